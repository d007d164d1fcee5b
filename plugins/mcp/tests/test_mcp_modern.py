"""A server of the revision 2026-07-28, made with the package itself: no handshake, changes on a stream that we open."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest
from kernel_mcp.extension import STATE
from mcp.server.mcpserver import Context, MCPServer

from kernel.testing import Kit, call, text


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The server in a thread of this process; ``grow`` gives it another tool and says so."""
    import uvicorn

    server: Any = MCPServer("modern", log_level="ERROR")

    numbers = count()

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool()
    async def grow(ctx: Context) -> str:  # type: ignore[type-arg]
        server.add_tool(lambda: "grown", name=f"grown_{next(numbers)}", description="New.")
        await ctx.notify_tools_changed()
        return "done"

    listening = socket.create_server(("127.0.0.1", 0))
    web = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error"))
    thread = threading.Thread(target=web.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not web.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    web.force_exit = web.should_exit = True
    thread.join(5)


def kit(folder: Path, address: str, *turns: Any) -> Kit:
    config = json.dumps({"mcpServers": {"new": {"type": "http", "url": address}}})
    return Kit(folder, turns, installed=["mcp"], extra={"mcp_config": [config]})


@pytest.mark.parametrize(("negotiation", "version"), [("", "2026-07-28"), ("legacy", "2025-11-25")])
def test_both_revisions_are_spoken(tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch, negotiation: str,
                                   version: str) -> None:
    monkeypatch.setenv("MCP_PROTOCOL_NEGOTIATION", negotiation)
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "false")

    async def all_of_it() -> Any:
        session = (made := kit(tmp_path, address, call("mcp__new__add", "c1", a=2, b=40), text("done"))).open()
        done = await made.run("go", session)
        assert session.plugin_state[STATE].links["new"].client.protocol_version == version
        await session.close()
        return done.result_of("c1")["content"]

    assert "42" in anyio.run(all_of_it)


def test_a_new_tool_is_heard_of(tmp_path: Path, address: str) -> None:
    async def all_of_it() -> None:
        session = kit(tmp_path, address).open()
        await session.start()
        bridge = session.plugin_state[STATE]
        before = len(bridge.links["new"].lists.tools)
        await anyio.sleep(0.3)  # the stream of notices is open by then
        assert await bridge.call("new", "grow", {}) == ("done", False)
        with anyio.fail_after(10):
            while len(bridge.links["new"].lists.tools) == before:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        await session.close()

    anyio.run(all_of_it)
