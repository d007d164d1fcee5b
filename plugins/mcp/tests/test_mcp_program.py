"""Servers inside a program, and behind a web socket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from kernel_mcp.calls import call_tool

from kernel.testing import Kit, call, text

if TYPE_CHECKING:
    from conftest import Remote


@pytest.fixture(autouse=True)
def no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "false")


def test_a_server_object_of_the_program_is_a_server(tmp_path: Path) -> None:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("calc")

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    async def all_of_it() -> str:
        made = Kit(
            tmp_path,
            [call("mcp__calc__add", "c1", a=2, b=40), text("done")],
            installed=["mcp"],
            extra={"mcp_servers": {"calc": server}},
        )
        session = made.open()
        done = await made.run("go", session)
        await session.close()
        return str(done.result_of("c1")["content"])

    assert "42" in anyio.run(all_of_it)


@pytest.mark.parametrize(("prefix", "name"), [("", "mcp__far__work"), ("1", "work")])
def test_a_server_of_the_program_that_runs_us(
    tmp_path: Path, web: Any, monkeypatch: pytest.MonkeyPatch, prefix: str, name: str
) -> None:
    """Messages go over a channel; a server that the program does not know, or that dies, costs only itself."""
    monkeypatch.setenv("CLAUDE_AGENT_SDK_MCP_NO_PREFIX", prefix)

    async def channel(server: str, message: dict[str, Any]) -> dict[str, Any] | None:
        if server == "unknown":
            return {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": -32601, "message": "Server 'unknown' not found"}}
        if server == "dead":
            raise RuntimeError("gone")
        return web.answer(message) or {"jsonrpc": "2.0", "result": {}}

    async def all_of_it() -> Any:
        config = {"mcpServers": {n: {"type": "sdk", "name": n} for n in ("far", "unknown", "dead")}}
        made = Kit(tmp_path, [call(name, "c1"), text("done")], installed=["mcp"], extra={"mcp_config": [json.dumps(config)]})
        session = made.open()
        session.plugin_state["mcp.channel"] = channel
        done = await made.run("go", session)
        await session.close()
        return done

    done = anyio.run(all_of_it)
    assert done.result_of("c1")["content"] == "done"
    assert {s["name"]: s["status"] for s in done.session.init_facts["mcp_servers"]} == {
        "far": "connected",
        "unknown": "failed",
        "dead": "failed",
    }


def test_a_server_of_the_program_is_tried_again_with_each_prompt(tmp_path: Path, web: Any) -> None:
    answers: list[bool] = [False]

    async def channel(server: str, message: dict[str, Any]) -> dict[str, Any] | None:
        if not answers[0]:
            raise RuntimeError("not yet")
        return web.answer(message) or {"jsonrpc": "2.0", "result": {}}

    async def all_of_it() -> None:
        config = json.dumps({"mcpServers": {"far": {"type": "sdk"}}})
        made = Kit(
            tmp_path, [text("one"), call("mcp__far__work", "c1"), text("two")], installed=["mcp"], extra={"mcp_config": [config]}
        )
        session = made.open()
        session.plugin_state["mcp.channel"] = channel
        await made.run("go", session)
        assert session.init_facts["mcp_servers"] == [{"name": "far", "status": "failed"}]
        answers[0] = True
        done = await made.run("again", session)
        assert done.result_of("c1")["content"] == "done"
        await session.close()

    anyio.run(all_of_it)


def test_a_server_behind_a_web_socket(net: Remote, tmp_path: Path, web: Any) -> None:
    """Text frames both ways; the header goes with the opening request; a frame that is no message is noise."""
    pytest.importorskip("wsproto")
    from wsproto import ConnectionType, WSConnection
    from wsproto.events import AcceptConnection, CloseConnection, Ping, Request, TextMessage

    seen: list[str] = []

    async def serve(stream: Any) -> None:
        server = WSConnection(ConnectionType.SERVER)
        async with stream:
            while True:
                try:
                    server.receive_data(await stream.receive())
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    return
                for event in server.events():
                    out: list[Any] = []
                    if isinstance(event, Request):
                        seen.append(dict(event.extra_headers).get(b"x-key", b"").decode())
                        out = [AcceptConnection(subprotocol="mcp")]
                    elif isinstance(event, TextMessage):
                        reply = web.answer(json.loads(event.data))
                        out = [TextMessage(data="no message")] + ([TextMessage(data=json.dumps(reply))] if reply else [])
                    elif isinstance(event, Ping | CloseConnection):
                        out = [event.response()]
                    for item in out:
                        await stream.send(server.send(item))

    async def all_of_it() -> None:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, serve)
            made = net.kit(entry={"type": "ws", "url": f"ws://127.0.0.1:{port}/", "headers": {"X-Key": "k"}})
            session, link = await net.connected(made)
            assert link.status == "connected", link.error
            assert (await call_tool(link, "work", {})).content[0].text == "done" and seen == ["k"]
            await session.close()
            group.cancel_scope.cancel()

    anyio.run(all_of_it)
