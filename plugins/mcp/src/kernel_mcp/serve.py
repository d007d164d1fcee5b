"""The harness as an MCP server: its tools, through the gates of any other call.

Each call runs as a turn of one session, in which a scripted model asks for that one tool: hooks, rules, modes, sizes and the
transcript are those of a session. Nobody can be asked, so what needs a yes is refused unless a rule allows it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from kernel import Harness, Options, UserMessage, __version__

if TYPE_CHECKING:
    from kernel import ModelRequest, Output, Session

HIDDEN = frozenset({"AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "ToolSearch", "Agent"})
"""Tools that mean something only in a conversation with a person or a model."""


class Turns:
    """Runs tools one after the other in a session."""

    def __init__(self, session: Session, seen: list[Output]) -> None:
        self._session = session
        self._seen = seen
        self._lock = anyio.Lock()
        self._next: dict[str, Any] | None = None
        session.call_model = self._play

    def definitions(self) -> list[dict[str, Any]]:
        return [d for d in self._session.toolbox.definitions if d["name"] not in HIDDEN]

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The result block of one call."""
        async with self._lock:
            call_id = f"toolu_{self._session.clock.new_id()}"
            self._next = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
            self._seen.clear()
            result = await self._session.submit(f"An MCP client calls {name}.")
            for message in self._seen:
                if isinstance(message, UserMessage):
                    for block in message.message["content"]:
                        if isinstance(block, dict) and block.get("tool_use_id") == call_id:
                            return block
            why = "; ".join(result.errors) if isinstance(result.errors, list) else str(result.result)
            return {"content": f"The call did not run: {why}", "is_error": True}

    async def _play(self, request: ModelRequest) -> AsyncIterator[dict[str, Any]]:
        """The call that waits; then an end."""
        call, self._next = self._next, None
        message = {"id": f"msg_{self._session.clock.new_id()}", "model": request.model, "usage": {}}
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": "done"}
        if call is not None:
            block, delta = {**call, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(call["input"])}
        reason = "tool_use" if call else "end_turn"
        yield {"type": "message_start", "message": message}
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}
        yield {"type": "message_stop"}


def serve(permission_mode: str, allowed: str, disallowed: str, debug: bool) -> int:
    """Serve until stdin ends; stdout holds messages of the protocol and nothing else."""
    options = Options(cwd=Path.cwd(), permission_mode=permission_mode or None, allowed_tools=_rules(allowed),
                      disallowed_tools=_rules(disallowed), persist=False, extra={"strict_mcp_config": True})
    anyio.run(_serve, options, debug)
    return 0


def _rules(text: str) -> list[str]:
    return [text] if text.strip() else []


async def _serve(options: Options, debug: bool) -> None:
    from mcp.server.stdio import stdio_server

    harness = Harness(options)
    harness.listeners.append(lambda text: print(text, file=sys.stderr))
    if debug:
        harness.debug_sink = lambda text: print(f"[debug] {text}", file=sys.stderr)
    for text in harness.announced:
        print(text, file=sys.stderr)
    seen: list[Output] = []
    session = harness.open(seen.append)
    turns = Turns(session, seen)
    try:
        await session.start()
        server = make_server(turns)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
    finally:
        await session.close()


def make_server(turns: Turns) -> Any:
    """The package's server over a session's tools."""
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

    async def list_tools(context: Any, params: Any) -> Any:
        return ListToolsResult(tools=[Tool(name=d["name"], description=d["description"], input_schema=d["input_schema"])
                                      for d in turns.definitions()])

    async def call_tool(context: Any, params: Any) -> Any:
        block = await turns.call(params.name, params.arguments or {})
        content = block.get("content") or ""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        return CallToolResult(content=[_content(p) for p in parts] or [TextContent(type="text", text="(no output)")],
                              is_error=bool(block.get("is_error")))

    return Server("kernel", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


def _content(part: dict[str, Any]) -> Any:
    from mcp_types import ImageContent, TextContent

    source = part.get("source") or {}
    if part.get("type") == "image" and source.get("type") == "base64":
        return ImageContent(type="image", data=source["data"], mime_type=source["media_type"])
    return TextContent(type="text", text=str(part.get("text", f"[{part.get('type')}]")))
