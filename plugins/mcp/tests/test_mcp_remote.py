"""Remote servers: HTTP, SSE, logins, headers of helpers, and what becomes of a connection when things go wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from runpy import run_path
from typing import Any

import anyio
import pytest
from kernel_mcp import limits as lim
from kernel_mcp.calls import call_tool
from kernel_mcp.credentials import Credentials, place
from kernel_mcp.entries import Server
from kernel_mcp.extension import STATE

from kernel import ToolError
from kernel.testing import Kit, call, text

Web = run_path(str(Path(__file__).with_name("mcp_web.py")))["Web"]


@pytest.fixture
def web() -> Iterator[Any]:
    with Web() as server:
        yield server


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "false")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setattr(lim, "RETRY_S", 0.02)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def kit(folder: Path, web: Any, *turns: Any, entry: dict[str, Any] | None = None, **options: Any) -> Kit:
    config = {"mcpServers": {"web": {"type": "http", "url": web.url, **(entry or {})}}}
    return Kit(folder, turns, installed=["mcp"], extra={"mcp_config": [json.dumps(config)]}, **options)


async def connected(made: Kit) -> tuple[Any, Any]:
    session = made.open()
    await session.start()
    return session, session.plugin_state[STATE].links["web"]


def facts(folder: Path, web: Any, **entry: Any) -> tuple[str, str]:
    """Status and error of one connection."""

    async def look() -> tuple[str, str]:
        session, link = await connected(kit(folder, web, entry=entry))
        found = link.status, link.error
        await session.close()
        return found

    return anyio.run(look)


def outcome(folder: Path, web: Any, **entry: Any) -> str:
    """What one call comes to: its text, or its code."""

    async def look() -> str:
        session, link = await connected(kit(folder, web, entry=entry))
        try:
            return str((await call_tool(link, "work", {})).content[0].text)
        except ToolError as error:
            return f"{error.code}: {error}"
        finally:
            await session.close()

    return anyio.run(look)


@pytest.mark.parametrize("entry", [{}, {"type": "sse"}, {"headers": {"X-Key": "a b"}}])
def test_a_tool_is_called(tmp_path: Path, web: Any, entry: dict[str, Any]) -> None:
    web.header = entry.get("headers", {}).get("X-Key", "")
    if entry.get("type") == "sse":
        entry = {**entry, "url": f"{web.origin}/sse"}

    async def all_of_it() -> str:
        made = kit(tmp_path, web, call("mcp__web__work", "c1"), text("done"), entry=entry)
        session = made.open()
        done = await made.run("go", session)
        await session.close()
        return str(done.result_of("c1")["content"])

    assert anyio.run(all_of_it) == "done"


@pytest.mark.parametrize(
    ("failing", "status", "tries"),
    [
        # auto negotiation asks twice per try: server/discover, then initialize
        ([503, 503], "connected", 4),
        ([503] * 20, "failed", 6),
        ([404, 404], "failed", 2),
        ([403, 403], "needs-auth", 2),
    ],
)
def test_the_first_connection_is_tried_again_where_that_helps(
    tmp_path: Path, web: Any, failing: list[int], status: str, tries: int
) -> None:
    web.failing = list(failing)
    found, error = facts(tmp_path, web)
    assert found == status
    assert len([m for m in web.methods() if m in ("initialize", "server/discover")]) == tries
    assert status == "connected" or f"HTTP {failing[0]}" in error


def test_nobody_listens_there(tmp_path: Path, web: Any) -> None:
    status, error = facts(tmp_path, web, url="http://127.0.0.1:9/mcp?token=s3cret")
    assert status == "failed" and "ConnectError" in error and "s3cret" not in error


def test_a_server_that_wants_a_login_is_named_to_the_model(tmp_path: Path, web: Any) -> None:
    """No browser, no registration: the run goes on, and the model can say what it needs."""
    web.token = "wanted"

    async def all_of_it() -> Any:
        made = kit(tmp_path, web, text("done"))
        session = made.open()
        done = await made.run("go", session)
        await session.close()
        return done

    done = anyio.run(all_of_it)
    assert done.session.init_facts["mcp_servers"] == [{"name": "web", "status": "needs-auth"}]
    assert "needs a login" in json.dumps(done.requests[0]["messages"]) and not web.registered


def test_a_configured_authorization_that_is_refused_is_a_failure(tmp_path: Path, web: Any) -> None:
    web.token = "wanted"
    status, error = facts(tmp_path, web, headers={"Authorization": "Bearer s3cret"})
    assert status == "failed" and "was refused" in error and "s3cret" not in error and not web.registered


def test_a_session_that_the_server_forgot_is_opened_again_once(tmp_path: Path, web: Any) -> None:
    async def all_of_it() -> None:
        session, link = await connected(kit(tmp_path, web))
        web.sessions.clear()
        assert (await call_tool(link, "work", {})).content[0].text == "done"
        assert web.methods().count("initialize") == 2 and web.methods().count("tools/call") == 2
        await session.close()

    anyio.run(all_of_it)


def test_a_failed_request_fails_alone(tmp_path: Path, web: Any) -> None:
    async def all_of_it() -> None:
        session, link = await connected(kit(tmp_path, web))
        web.failing = [500]
        with pytest.raises(ToolError, match="HTTP 500"):
            await call_tool(link, "work", {})
        assert (await call_tool(link, "work", {})).content[0].text == "done"
        assert web.methods().count("initialize") == 1
        await session.close()

    anyio.run(all_of_it)


def test_an_answer_of_40_mb_is_refused(tmp_path: Path, web: Any) -> None:
    web.size = 40_000_000
    assert "more than 32 MiB" in outcome(tmp_path, web)


def test_an_answer_that_does_not_begin_ends_its_call(tmp_path: Path, web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    original = lim.read
    import msgspec

    monkeypatch.setattr(lim, "read", lambda: msgspec.structs.replace(original(), first_byte_s=1.0))

    async def all_of_it() -> None:
        session, link = await connected(kit(tmp_path, web))
        web.hold_s = 3.0
        with pytest.raises(ToolError, match="no answer began within 1 seconds"):
            await call_tool(link, "work", {})
        web.hold_s = 0.0
        assert (await call_tool(link, "work", {})).content[0].text == "done"
        await session.close()

    anyio.run(all_of_it)


# -- headers of helpers -------------------------------------------------------------------------------------------------------
def test_a_helper_gives_headers_and_is_asked_again_when_they_are_refused(tmp_path: Path, web: Any) -> None:
    """It beats static headers; it sees name and address, and no credentials where it comes from a plugin."""
    keys = tmp_path / "keys"
    keys.write_text("one")
    web.header = "one"
    helper = f'printf \'{{"X-Key": "%s", "X-Name": "%s"}}\' "$(cat {keys})" "$CLAUDE_CODE_MCP_SERVER_NAME"'

    async def all_of_it() -> None:
        session, link = await connected(kit(tmp_path, web, entry={"headersHelper": helper, "headers": {"x-key": "static"}}))
        assert link.status == "connected" and web.requests[-1][2]["x-name"] == "web"
        keys.write_text("two")
        web.header = "two"
        assert (await call_tool(link, "work", {})).content[0].text == "done"
        await session.close()

    anyio.run(all_of_it)


@pytest.mark.parametrize(
    ("helper", "piece"),
    [
        ("exit 3", "exit code 3"),
        ("echo no", "one JSON object"),
        ("echo '[1]'", "one JSON object"),
        ('printf \'{"A": "b\\\\nC: d"}\'', "one JSON object"),
    ],
)
def test_a_helper_that_fails_is_named(tmp_path: Path, web: Any, helper: str, piece: str) -> None:
    status, error = facts(tmp_path, web, headersHelper=helper)
    assert status == "failed" and "headersHelper" in error and piece in error


# -- logins -----------------------------------------------------------------------------------------------------------------
def log_in(web: Any, *args: str, folder: Path, paste: bool = False) -> subprocess.CompletedProcess[str]:
    """``kernel mcp login web`` as a person does it, with or without a browser on this machine."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kernel", "mcp", "login", "web", "--no-browser", *args],
        cwd=folder,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ),
    )
    assert process.stderr is not None and process.stdin is not None
    said = ""
    while "Waiting." not in said:
        line = process.stderr.readline()
        said += line
        if not line:
            break
    address = next((w for w in said.split() if w.startswith(web.origin)), "")
    if address:

        class Stay(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *args: Any) -> None:
                return None

        try:
            urllib.request.build_opener(Stay).open(address)
        except urllib.error.HTTPError as redirect:
            back = redirect.headers["Location"]
        if paste:
            process.stdin.write(back + "\n")
            process.stdin.flush()
        else:
            threading.Thread(target=urllib.request.urlopen, args=(back,), daemon=True).start()
    out, error = process.communicate(timeout=60)
    return subprocess.CompletedProcess([], process.returncode, out, said + error)


@pytest.fixture
def home(tmp_path: Path, web: Any) -> Path:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / ".claude.json").write_text(json.dumps({"mcpServers": {"web": {"type": "http", "url": web.url}}}))
    return tmp_path


@pytest.mark.parametrize("paste", [False, True])
def test_a_person_logs_in_and_out(home: Path, web: Any, paste: bool) -> None:
    """Registration, PKCE, the way back by port or by paste; the tokens are private; a later run has them."""
    web.token = "nobody has it"
    done = log_in(web, folder=home, paste=paste)
    assert done.returncode == 0 and "Logged in" in done.stdout, done.stderr
    assert (
        place().stat().st_mode & 0o777 == 0o600
        and web.token in place().read_text()
        and web.token not in done.stdout + done.stderr
    )
    asked = web.authorized[0]
    assert asked["redirect_uri"].startswith("http://localhost:") and asked["code_challenge_method"] == "S256"
    assert asked["scope"] == "read" and asked["resource"] == web.url
    assert outcome(home, web) == "done"
    gone = subprocess.run(
        [sys.executable, "-m", "kernel", "mcp", "logout", "web"], cwd=home, capture_output=True, text=True, check=False
    )
    assert gone.returncode == 0 and web.token not in place().read_text() and facts(home, web)[0] == "needs-auth"


def test_a_token_that_ran_out_is_refreshed_without_a_person(home: Path, web: Any) -> None:
    web.token = "nobody has it"
    log_in(web, folder=home)
    Credentials(Server(name="web", kind="http", scope="user", url=web.url), place()).expire()
    assert outcome(home, web) == "done" and web.granted[-1]["grant_type"] == "refresh_token"


def test_a_token_that_is_refused_is_refreshed_once_and_then_given_up(home: Path, web: Any) -> None:
    web.token = "nobody has it"
    log_in(web, folder=home)
    web.token = "revoked"
    assert outcome(home, web) == "done" and web.granted[-1]["grant_type"] == "refresh_token"
    web.token, web.refresh = "revoked again", "also revoked"
    assert facts(home, web)[0] == "needs-auth" and len(web.authorized) == 1


def test_scopes_of_the_entry_stay_pinned(home: Path, web: Any) -> None:
    entry = {"type": "http", "url": web.url, "oauth": {"scopes": "a b", "clientId": "mine"}}
    (home / "config" / ".claude.json").write_text(json.dumps({"mcpServers": {"web": entry}}))
    web.token = "nobody has it"
    assert log_in(web, folder=home).returncode == 0
    assert web.authorized[0]["scope"] == "a b" and web.authorized[0]["client_id"] == "mine" and not web.registered


def test_a_login_where_none_is_needed(home: Path, web: Any) -> None:
    assert "asked for no login" in log_in(web, folder=home).stdout


# -- in this process --------------------------------------------------------------------------------------------------------
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


def test_a_server_behind_a_web_socket(tmp_path: Path, web: Any) -> None:
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
            made = kit(tmp_path, web, entry={"type": "ws", "url": f"ws://127.0.0.1:{port}/", "headers": {"X-Key": "k"}})
            session, link = await connected(made)
            assert link.status == "connected", link.error
            assert (await call_tool(link, "work", {})).content[0].text == "done" and seen == ["k"]
            await session.close()
            group.cancel_scope.cancel()

    anyio.run(all_of_it)
