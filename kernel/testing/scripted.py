"""A model that plays a script."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

import msgspec

from kernel.errors import ModelError, StreamError
from kernel.messages import Block, text_block
from kernel.models import ModelInfo, ModelRequest, Prices, StreamEvent


def text(value: str) -> Block:
    return text_block(value)


def call(name: str, id: str | None = None, /, **input: Any) -> Block:
    """One tool call. Ids count up within a model: ``call_1``, ``call_2`` ... where none is given."""
    return {"type": "tool_use", "id": id, "name": name, "input": input}


class Turn(msgspec.Struct, kw_only=True):
    """An answer with more to it: a stop reason, a failure, a stream that is cut after ``cut`` events."""

    blocks: list[Block] = msgspec.field(default_factory=list)
    stop_reason: str | None = None
    fail: ModelError | None = None
    cut: int | None = None
    usage: dict[str, int] = msgspec.field(default_factory=lambda: {"input_tokens": 10, "output_tokens": 5})


def as_body(request: ModelRequest) -> dict[str, Any]:
    """A request as the API would see it, decoded: ``model``, ``system``, ``tools``, ``messages``."""
    return {"model": request.model, "system": request.system, "tools": request.tools,
            "messages": msgspec.json.decode(request.history.encode())}


Scripted = Block | Sequence[Block] | Turn | Callable[[dict[str, Any]], Any]


class ScriptedModel:
    """A model provider that plays turns and keeps every request as the API would have seen it.

    ``requests``: decoded JSON bodies (``model``, ``system``, ``tools``, ``messages``). A finished script answers "The
    script has ended.".
    """

    name = "anthropic"

    def __init__(self, turns: Iterable[Scripted] = (), *, prices: Prices | None = None) -> None:
        self.turns = list(turns)
        self.requests: list[dict[str, Any]] = []
        self.prices = prices
        self._ids = itertools.count(1)
        self._calls = itertools.count(1)

    def resolve(self, model: str) -> ModelInfo | None:
        return ModelInfo(id=model, prices=self.prices)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        body = as_body(request)
        self.requests.append(body)
        turn: Any = self.turns.pop(0) if self.turns else text("The script has ended.")
        while callable(turn):
            turn = turn(body)
        if not isinstance(turn, Turn):
            turn = Turn(blocks=[turn] if isinstance(turn, dict) else list(turn))
        if turn.fail is not None:
            raise turn.fail
        for number, event in enumerate(self._events(turn, request.model)):
            if turn.cut is not None and number >= turn.cut:
                raise StreamError("cut", kind="connection_error")
            yield event

    def _events(self, turn: Turn, model: str) -> Iterable[StreamEvent]:
        calls = any(b.get("type") == "tool_use" for b in turn.blocks)
        yield {"type": "message_start", "message": {"id": f"msg_{next(self._ids)}", "model": model, "usage": turn.usage}}
        for index, block in enumerate(turn.blocks):
            kind = block["type"]
            if kind == "text":
                yield {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
                yield {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": block["text"]}}
            elif kind == "tool_use":
                start = {**block, "id": block["id"] or f"call_{next(self._calls)}", "input": {}}
                raw = start.pop("raw_input", None)
                yield {"type": "content_block_start", "index": index, "content_block": start}
                yield {"type": "content_block_delta", "index": index, "delta": {
                    "type": "input_json_delta", "partial_json": json.dumps(block["input"]) if raw is None else raw}}
            else:
                yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_stop", "index": index}
        reason = turn.stop_reason or ("tool_use" if calls else "end_turn")
        yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": turn.usage}
        yield {"type": "message_stop"}

    async def aclose(self) -> None:
        pass
