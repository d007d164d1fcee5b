"""A world with real plugins around the Agent tool; the model answers each agent by what its task says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio

from kernel import AssistantMessage, ModelRequest, Session, SystemMessage, Tool, ToolContext, ToolResult, UserMessage
from kernel.testing import Kit, Run, ScriptedModel, call, until

WITH = ("subagents", "permissions", "tools-files", "tools-shell", "command-hooks")
SCOUT = "---\nname: scout\ndescription: Finds things.\n---\nYou are the scout.\n"


class Routed(ScriptedModel):
    """Plays a script for every conversation, told apart by a word of its first prompt; ``turns`` is the main one's."""

    def __init__(self, turns: Any, routes: dict[str, list[Any]], **more: Any) -> None:
        super().__init__(turns, **more)
        self.routes = {word: list(script) for word, script in routes.items()}
        self.by_route: dict[str, list[dict[str, Any]]] = {}

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        messages = request.history.wire()
        said = [b.get("text", "") for m in messages if m["role"] == "user" for b in m["content"]]
        word = next((w for w in self.routes if any(t.startswith(w) for t in said)), "")
        main, self.turns = self.turns, self.routes.get(word, self.turns)
        events = super().stream(request)
        try:
            event = await events.__anext__()
        finally:
            self.turns = main
            self.by_route.setdefault(word, []).append(self.requests[-1])
        yield event
        async for event in events:
            yield event


class Gate(Tool):
    """Holds an agent until the test lets it go on. ``waiting``: who stands before it."""

    name = "Gate"
    description = "Waits."
    input_schema = {"type": "object"}
    permission = "free"

    def __init__(self) -> None:
        self.waiting: list[str | None] = []
        self.open = anyio.Event()
        self.cancelled = 0

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        self.waiting.append(context.session.agent_id)
        try:
            await self.open.wait()
        except BaseException:
            self.cancelled += 1
            raise
        return ToolResult(content="open")


class World:
    """One workspace. ``run`` plays a script through a session with the installed plugins."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / ".config"
        self.model: Routed = Routed([], {})
        self.kit: Kit | None = None

    def write(self, path: str, text: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def agent(self, name: str, body: str = "You work.", **fields: Any) -> Path:
        head = "\n".join(f"{k}: {v if isinstance(v, str) else json.dumps(v)}"
                         for k, v in {"name": name, "description": f"The {name}.", **fields}.items())
        return self.write(f".claude/agents/{name}.md", f"---\n{head}\n---\n{body}\n")

    def open(self, turns: Any = (), routes: dict[str, list[Any]] | None = None, *, more: tuple[str, ...] = (),
             without: tuple[str, ...] = (), prices: Any = None, **kit: Any) -> Session:
        self.model = Routed(turns, routes or {}, prices=prices)
        self.kit = Kit(self.root, model=self.model, installed=[n for n in (*WITH, *more) if n not in without], **kit)
        self.session = self.kit.open()
        return self.session

    async def run(self, turns: Any, routes: dict[str, list[Any]] | None = None, prompt: str = "Start.", **kit: Any) -> Run:
        self.open(turns, routes, **kit)
        return await self.go(prompt)

    async def go(self, prompt: str) -> Run:
        assert self.kit is not None
        return await self.kit.run(prompt, self.session)

    async def settle(self) -> list[Any]:
        """What print mode does behind a run: wait for agents, start a run for each report."""
        results = []
        while len(self.session.inbox) or self.session.inbox.awaited:
            if len(self.session.inbox):
                results.append(await self.session.submit(None, origin=self.session.inbox.origin))
            await self.session.inbox.wait(20)
        return results

    # -- what happened -------------------------------------------------------------------------------------------------
    def result(self, call_id: str) -> str:
        """What the main conversation's model was told."""
        for request in reversed(self.model.by_route.get("", [])):
            for message in request["messages"]:
                for block in message["content"]:
                    if block.get("type") == "tool_result" and block.get("tool_use_id") == call_id:
                        content = block["content"]
                        return content if isinstance(content, str) else json.dumps(content)
        raise AssertionError(f"no result for {call_id}")

    def told(self, route: str = "", request: int = -1) -> str:
        """All that a conversation's model was shown in one request."""
        return json.dumps(self.model.by_route[route][request], ensure_ascii=False)

    def tools(self, route: str) -> list[str]:
        return [t["name"] for t in self.model.by_route[route][0]["tools"]]

    def said(self, subtype: str) -> list[dict[str, Any]]:
        assert self.kit is not None
        return [m.data for m in self.kit.outputs if isinstance(m, SystemMessage) and m.subtype == subtype]

    def messages(self) -> list[AssistantMessage | UserMessage]:
        assert self.kit is not None
        return [m for m in self.kit.outputs if isinstance(m, AssistantMessage | UserMessage)]

    async def until(self, true: Callable[[], bool]) -> None:
        await until(true)


def agent(prompt: str, id: str = "toolu_1", type: str | None = "scout", background: bool | None = False,
          **more: Any) -> dict[str, Any]:
    """A call of the Agent tool; in the foreground unless it is said otherwise."""
    fields = {"description": "look", "prompt": prompt, **more}
    if type is not None:
        fields["subagent_type"] = type
    if background is not None:
        fields["run_in_background"] = background
    return call("Agent", id, **fields)
