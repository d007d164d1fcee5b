"""Remote servers: HTTP, SSE, headers of helpers, and what becomes of a connection when things go wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest
from kernel_mcp import limits as lim
from kernel_mcp.calls import call_tool
from kernel_mcp.extension import STATE

from kernel import ToolError
from kernel.testing import Kit, call, text

if TYPE_CHECKING:
    from conftest import Remote


@pytest.mark.parametrize("entry", [{}, {"type": "sse"}, {"headers": {"X-Key": "a b"}}])
def test_a_tool_is_called(net: Remote, tmp_path: Path, web: Any, entry: dict[str, Any]) -> None:
    web.header = entry.get("headers", {}).get("X-Key", "")
    if entry.get("type") == "sse":
        entry = {**entry, "url": f"{web.origin}/sse"}

    async def all_of_it() -> str:
        made = net.kit(call("mcp__web__work", "c1"), text("done"), entry=entry)
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
    net: Remote, tmp_path: Path, web: Any, failing: list[int], status: str, tries: int
) -> None:
    web.failing = list(failing)
    found, error = net.facts()
    assert found == status
    assert len([m for m in web.methods() if m in ("initialize", "server/discover")]) == tries
    assert status == "connected" or f"HTTP {failing[0]}" in error


def test_nobody_listens_there(net: Remote, tmp_path: Path, web: Any) -> None:
    status, error = net.facts(url="http://127.0.0.1:9/mcp?token=s3cret")
    assert status == "failed" and "ConnectError" in error and "s3cret" not in error


def test_a_server_that_wants_a_login_is_named_to_the_model(net: Remote, tmp_path: Path, web: Any) -> None:
    """No browser, no registration: the run goes on, and the model can say what it needs."""
    web.token = "wanted"

    async def all_of_it() -> Any:
        made = net.kit(text("done"))
        session = made.open()
        done = await made.run("go", session)
        await session.close()
        return done

    done = anyio.run(all_of_it)
    assert done.session.init_facts["mcp_servers"] == [{"name": "web", "status": "needs-auth"}]
    assert "needs a login" in json.dumps(done.requests[0]["messages"]) and not web.registered


def test_a_configured_authorization_that_is_refused_is_a_failure(net: Remote, tmp_path: Path, web: Any) -> None:
    web.token = "wanted"
    status, error = net.facts(headers={"Authorization": "Bearer s3cret"})
    assert status == "failed" and "was refused" in error and "s3cret" not in error and not web.registered


def test_a_session_that_the_server_forgot_is_opened_again_once(net: Remote, tmp_path: Path, web: Any) -> None:
    async def all_of_it() -> None:
        session, link = await net.connected(net.kit())
        web.sessions.clear()
        assert (await call_tool(link, "work", {})).content[0].text == "done"
        assert web.methods().count("initialize") == 2 and web.methods().count("tools/call") == 2
        await session.close()

    anyio.run(all_of_it)


def test_a_failed_request_fails_alone(net: Remote, tmp_path: Path, web: Any) -> None:
    async def all_of_it() -> None:
        session, link = await net.connected(net.kit())
        web.failing = [500]
        with pytest.raises(ToolError, match="HTTP 500"):
            await call_tool(link, "work", {})
        assert (await call_tool(link, "work", {})).content[0].text == "done"
        assert web.methods().count("initialize") == 1
        await session.close()

    anyio.run(all_of_it)


def test_an_answer_of_40_mb_is_refused(net: Remote, tmp_path: Path, web: Any) -> None:
    web.size = 40_000_000
    assert "more than 32 MiB" in net.outcome()


def test_an_answer_that_does_not_begin_ends_its_call(
    net: Remote, tmp_path: Path, web: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = lim.read
    monkeypatch.setattr(lim, "read", lambda: msgspec.structs.replace(original(), first_byte_s=1.0))

    async def all_of_it() -> None:
        session, link = await net.connected(net.kit())
        web.hold_s = 3.0
        with pytest.raises(ToolError, match="no answer began within 1 seconds"):
            await call_tool(link, "work", {})
        web.hold_s = 0.0
        assert (await call_tool(link, "work", {})).content[0].text == "done"
        await session.close()

    anyio.run(all_of_it)


def test_no_secret_is_told_to_anybody(tmp_path: Path, web: Any) -> None:
    """Header, address and login of a server that works, and of one that does not: not in the log, a notice or a report."""
    said: list[str] = []
    web.header = "h-s3cret"

    async def all_of_it() -> None:
        config = {
            "mcpServers": {
                "web": {"type": "http", "url": f"{web.url}?token=u-s3cret", "headers": {"X-Key": "h-s3cret"}},
                "bad": {
                    "type": "http",
                    "url": "http://me:p-s3cret@127.0.0.1:9/?key=u-s3cret",
                    "headers": {"Authorization": "Bearer h-s3cret"},
                },
                "gone": {"command": "no-such-program", "args": ["--api-key", "a-s3cret"], "env": {"KEY": "e-s3cret"}},
            }
        }
        made = Kit(
            tmp_path, [call("mcp__web__work", "c1"), text("done")], installed=["mcp"], extra={"mcp_config": [json.dumps(config)]}
        )
        made.harness.debug_sink = said.append
        session = made.open()
        done = await made.run("go", session)
        assert done.result_of("c1")["content"] == "done"
        said.extend(
            [
                *done.notices(),
                *made.harness.announced,
                json.dumps(session.plugin_state[STATE].report()),
                json.dumps(done.requests),
            ]
        )
        await session.close()

    anyio.run(all_of_it)
    assert any("bad" in text for text in said) and not [text for text in said if "s3cret" in text]


# -- connections that are lost -----------------------------------------------------------------------------------------
def test_a_server_that_went_away_and_came_back(net: Remote, web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call fails, the connection is pending, its tools stay; when somebody listens again, it works again."""
    monkeypatch.setattr(lim, "RECONNECT_S", 0.2)

    async def all_of_it() -> None:
        session, link = await net.connected(net.kit())
        await anyio.to_thread.run_sync(web.__exit__)
        with pytest.raises(ToolError, match="ConnectError"):
            await call_tool(link, "work", {})
        await anyio.sleep(0.05)
        assert link.status == "pending"
        session.request()
        for view in session.plugin_state["mcp.views"]:
            view.sync()
        assert "mcp__web__work" in session.toolbox.by_name
        with type(web)(web.port):
            assert (await call_tool(link, "work", {})).content[0].text == "done" and link.status == "connected"
            await session.close()

    anyio.run(all_of_it)


def test_a_server_that_stays_away_is_given_up_after_five_tries(net: Remote, web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lim, "RECONNECT_S", 0.01)

    async def all_of_it() -> None:
        session, link = await net.connected(net.kit())
        await anyio.to_thread.run_sync(web.__exit__)
        with pytest.raises(ToolError, match="ConnectError"):
            await call_tool(link, "work", {})
        await link.settled.wait()
        with anyio.fail_after(10):
            while link.status == "connected" or link.status == "pending":  # noqa: ASYNC110
                await anyio.sleep(0.02)
        assert link.status == "failed" and "ConnectError" in link.error
        with pytest.raises(ToolError, match="is not connected"):
            await call_tool(link, "work", {})
        await session.close()

    anyio.run(all_of_it)


def test_a_stream_that_ends_is_opened_again(net: Remote, web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lim, "RECONNECT_S", 0.05)

    async def all_of_it() -> None:
        session, link = await net.connected(net.kit(entry={"type": "sse", "url": f"{web.origin}/sse"}))
        web.streams[-1].put("")
        with anyio.fail_after(10):
            while len(web.streams) < 2 or link.status != "connected":  # noqa: ASYNC110
                await anyio.sleep(0.02)
        assert (await call_tool(link, "work", {})).content[0].text == "done"
        await session.close()

    anyio.run(all_of_it)


# -- headers of helpers -------------------------------------------------------------------------------------------------------
def test_a_helper_gives_headers_and_is_asked_again_when_they_are_refused(net: Remote, tmp_path: Path, web: Any) -> None:
    """It beats static headers; it sees name and address, and no credentials where it comes from a plugin."""
    keys = tmp_path / "keys"
    keys.write_text("one")
    web.header = "one"
    helper = f'printf \'{{"X-Key": "%s", "X-Name": "%s"}}\' "$(cat {keys})" "$CLAUDE_CODE_MCP_SERVER_NAME"'

    async def all_of_it() -> None:
        session, link = await net.connected(net.kit(entry={"headersHelper": helper, "headers": {"x-key": "static"}}))
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
def test_a_helper_that_fails_is_named(net: Remote, tmp_path: Path, web: Any, helper: str, piece: str) -> None:
    status, error = net.facts(headersHelper=helper)
    assert status == "failed" and "headersHelper" in error and piece in error
