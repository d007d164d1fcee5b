"""What a hook talks to besides programs and servers: an evaluating model, a bridge to MCP servers, the embedding program."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import anyio
import msgspec
from kernel_command_hooks import run_agent, run_prompt

from kernel import ModelRequest, StreamError, StreamEvent
from kernel.testing import ScriptedModel, Turn, text

from .conftest import World

EVALUATORS = (run_prompt.SYSTEM, run_agent.SYSTEM)


def note(world: World, id: str) -> None:
    """Keep that a handler ran."""
    with (world.log / "ran").open("a") as log:
        log.write(f"{id}\n")


class Judge(ScriptedModel):
    """A scripted model that answers evaluators as their handler's ``does`` says, beside its script.

    ``asked`` keeps the evaluators' requests apart from ``requests``, which are those of the conversation.
    """

    def __init__(self, world: World, turns: Iterable[Any], does: dict[str, dict[str, Any]]) -> None:
        super().__init__(turns)
        self._world, self._does = world, does
        self.asked: list[dict[str, Any]] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if not (request.system and request.system[0]["text"] in EVALUATORS):
            async for event in super().stream(request):
                yield event
            return
        self.asked.append({"model": request.model, "tools": request.tools, "max_tokens": request.max_tokens,
                           "messages": msgspec.json.decode(request.history.encode())})
        id, does = next(iter(self._does.items()))
        note(self._world, id)
        await anyio.sleep(does.get("sleep_s", 0))
        turns = does.get("turns")
        turn = turns.pop(0) if turns else text(does["answer"] if "answer" in does else json.dumps(does["verdict"]))
        if not isinstance(turn, Turn):
            turn = Turn(blocks=[turn] if isinstance(turn, dict) else list(turn))
        if turn.fail is not None:
            raise turn.fail
        for number, event in enumerate(self._events(turn, request.model)):
            if number == turn.cut:
                raise StreamError("cut", kind="connection_error")
            yield event


class Bridge:
    """Servers that are connected, or not, as ``does`` says. ``inputs`` keeps (server, tool, input)."""

    def __init__(self, world: World, id: str, does: dict[str, Any]) -> None:
        self._world, self._id, self._does = world, id, does
        self.inputs: list[tuple[str, str, dict[str, Any]]] = []

    async def call(self, server: str, tool: str, input: dict[str, Any]) -> tuple[str, bool]:
        self.inputs.append((server, tool, input))
        if not self._does.get("connected", True):
            raise ConnectionError(f"the server {server!r} is not connected")
        note(self._world, self._id)
        return self._does.get("text") or json.dumps(self._does.get("json", {})), self._does.get("is_error", False)


def callback(world: World, id: str, does: dict[str, Any],
             called: list[tuple[dict[str, Any], str | None]]) -> Callable[[dict[str, Any], str | None], Awaitable[Any]]:
    """A callback of an embedding program that does what the case says."""
    async def answer(input: dict[str, Any], tool_use_id: str | None) -> Any:
        note(world, id)
        called.append((input, tool_use_id))
        await anyio.sleep(does.get("sleep_s", 0))
        if "error" in does:
            raise RuntimeError(does["error"])
        return does.get("json")
    return answer
