"""The start of a session with servers: who waits for whom, what comes later, and who answers permission questions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from kernel_mcp.extension import STATE
from kernel_mcp.prompt_tool import NEEDS_PERSON, PromptTool, read

from kernel import PermissionCall, SystemMessage, UsageError, Verdict
from kernel.testing import Kit, call, text

if TYPE_CHECKING:
    from conftest import Bench

PROGRAM = str(Path(__file__).with_name("mcp_good_server.py"))


def test_twenty_servers_start_side_by_side(bench: Bench, tmp_path: Path) -> None:
    """Each of them answers only when all twenty are running: one after the other, none would ever be ready."""
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    entry = {"command": sys.executable, "args": ["-S", "-E", PROGRAM, "--meet", str(meeting), "20"]}
    config = json.dumps({"mcpServers": {f"s{n}": entry for n in range(20)}})

    async def all_of_it() -> list[Any]:
        session = Kit(tmp_path, installed=["mcp"], extra={"mcp_config": [config]}).open()
        await session.start()
        await session.close()
        return list(session.init_facts["mcp_servers"])

    assert {entry["status"] for entry in anyio.run(all_of_it)} == {"connected"}
    assert len(list(meeting.iterdir())) == 20


def test_a_start_with_a_person_does_not_wait_and_the_tools_come_with_a_later_request(bench: Bench, tmp_path: Path) -> None:
    """Pending in the first request, where ``WaitForMcpServers`` is offered; there from the next on."""
    go = tmp_path / "go"

    async def all_of_it() -> None:
        made = bench.kit(call("WaitForMcpServers", "c1", timeout=20), text("one"), args=("--wait", str(go)), print_mode=False)
        session = made.open()
        await session.start()
        link = session.plugin_state[STATE].links["good"]
        assert link.status == "pending"
        async with anyio.create_task_group() as group:
            group.start_soon(made.run, "go", session)
            while not made.model.requests:  # noqa: ASYNC110
                await anyio.sleep(0.02)
            go.touch()
        first, second = ([t["name"] for t in r["tools"]] for r in made.model.requests)
        assert "WaitForMcpServers" in first and "mcp__good__echo" not in first
        assert "WaitForMcpServers" not in second and "mcp__good__echo" in second
        assert "good: connected" in json.dumps(made.model.requests[1]["messages"])
        await session.close()

    anyio.run(all_of_it)


@pytest.mark.parametrize("always", [True, False])
def test_an_always_loaded_server_is_waited_for(bench: Bench, always: bool) -> None:
    async def all_of_it() -> str:
        session = bench.kit(server={"alwaysLoad": always}, print_mode=False).open()
        await session.start()
        status = str(session.plugin_state[STATE].links["good"].status)
        await session.close()
        return status

    assert anyio.run(all_of_it) == ("connected" if always else "pending")


def test_a_server_that_never_answers_does_not_hold_the_end(bench: Bench, tmp_path: Path) -> None:
    async def all_of_it() -> None:
        session = bench.kit(args=("--wait", str(tmp_path / "never")), print_mode=False).open()
        await session.start()
        process = session.plugin_state[STATE].links["good"]
        await anyio.sleep(0.2)
        with anyio.fail_after(8):
            await session.close()
        assert process.child.process.returncode is not None

    anyio.run(all_of_it)


def test_a_server_is_stopped_at_any_moment_of_its_start(bench: Bench) -> None:
    """At once, while it starts, while it is asked, when it is there: it ends, its process too, and it starts again."""
    async def all_of_it() -> None:
        session = bench.kit(print_mode=False).open()
        await session.start()
        link = session.plugin_state[STATE].links["good"]
        for pause in (0.0, 0.0, 0.01, 0.03, 0.06, 0.1, 0.2, 0.4):
            await anyio.sleep(pause)
            with anyio.fail_after(8):
                await link.stop()
            assert link.status == "disabled" and link.client is None
            assert link.child is None or link.child.process.returncode is not None
            link.start()
        await link.settled.wait()
        assert link.status == "connected"
        await session.close()

    anyio.run(all_of_it)


def test_a_bad_entry_is_in_the_init_message(bench: Bench, tmp_path: Path) -> None:
    config = json.dumps({"mcpServers": {"bad": {"url": "http://x"}, "workspace": {"command": "x"}}})

    async def all_of_it() -> Any:
        session = Kit(tmp_path, installed=["mcp"], extra={"mcp_config": [config]}).open()
        await session.start()
        await session.close()
        return session.init_facts

    facts = anyio.run(all_of_it)
    assert [(e["name"], e["type"]) for e in facts["mcp_server_errors"]] == [
        ("bad", "url_missing_type"),
        ("workspace", "reserved_name"),
    ]


@pytest.mark.parametrize("config", ["{ broken", '{"mcpServers": 5}', "no-such-file.json"])
def test_a_config_that_cannot_be_used_asks_the_model_nothing(tmp_path: Path, config: str) -> None:
    """The run ends before it begins; it does not go on without the servers that it was given."""
    made = Kit(tmp_path, [text("done")], installed=["mcp"], extra={"mcp_config": [config]})
    with pytest.raises(UsageError, match="--mcp-config"):
        made.open()


def test_a_person_decides_about_the_projects_servers(bench: Bench, tmp_path: Path) -> None:
    """Asked once: the answers are kept where the next session finds them."""
    entry = {"command": sys.executable, "args": ["-S", "-E", PROGRAM]}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"yes": entry, "no": entry}}))

    async def all_of_it() -> None:
        session = Kit(tmp_path, installed=["mcp"], print_mode=False).open()
        await session.start()
        bridge = session.plugin_state[STATE]
        assert bridge.undecided() == ["no", "yes"] and not bridge.links
        await bridge.decide("yes", True)
        await bridge.decide("no", False)
        assert bridge.links["yes"].status == "connected" and not bridge.undecided() and "no" in bridge.off
        await session.close()

    anyio.run(all_of_it)
    kept = json.loads((tmp_path / ".claude" / "settings.local.json").read_text())
    assert kept == {"enabledMcpjsonServers": ["yes"], "disabledMcpjsonServers": ["no"]}


def test_a_program_changes_the_servers_of_its_run(bench: Bench) -> None:
    async def all_of_it() -> None:
        made = bench.kit(text("one"), text("two"))
        session = made.open()
        await made.run("go", session)
        bridge = session.plugin_state[STATE]
        good = bridge.links["good"].server.raw
        assert await bridge.set_servers({"other": good, "bad": {"url": "http://x"}}) == {
            "added": ["other"], "removed": ["good"], "errors": {"bad": 'an entry with "url" needs "type": "http" or "sse"'}}
        await made.run("again", session)
        names = {t["name"].split("__")[1] for t in made.model.requests[-1]["tools"] if t["name"].startswith("mcp__")}
        assert names == {"other"}
        await session.close()

    anyio.run(all_of_it)


# -- permission questions -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"behavior": "allow"}', {"behavior": "allow"}),
        ('{"behavior": "allow", "updatedInput": {"a": 1}}', {"behavior": "allow", "updatedInput": {"a": 1}}),
        ('{"behavior": "deny", "message": "no"}', {"behavior": "deny", "message": "no"}),
        ('{"behavior": "maybe"}', {"behavior": "deny", "message": "the answer of the permission tool cannot be read"}),
        ("yes", {"behavior": "deny", "message": "the answer of the permission tool cannot be read"}),
        ("[]", {"behavior": "deny", "message": "the answer of the permission tool cannot be read"}),
    ],
)
def test_what_a_permission_tool_says(answer: str, expected: dict[str, Any]) -> None:
    assert read(answer) == expected


def test_a_servers_tool_answers_permission_questions(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """``echo`` is asked and gives its input back, which is no answer: a denial. A tool that is not there is named."""
    asked: list[str] = []

    def decide(name: str, input: dict[str, Any]) -> str:
        asked.append(name)
        return "ask"

    made = bench.kit(
        call("mcp__good__big", "c1", size=5), text("done"), policy=decide, extra={"permission_prompt_tool": "mcp__good__echo"}
    )
    assert "cannot be read" in bench.run(made).result_of("c1")["content"]
    made = bench.kit(
        call("mcp__good__big", "c1", size=5), text("done"), policy=decide, extra={"permission_prompt_tool": "mcp__good__absent"}
    )
    said = bench.run(made).result_of("c1")["content"]
    assert (
        "MCP tool mcp__good__absent (passed via --permission-prompt-tool) not found. Available MCP tools: mcp__good__always"
        in said
    )


def test_a_permission_tool_cannot_stand_in_for_a_person(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its yes for a tool that needs a person becomes a no with the documented words."""
    monkeypatch.setattr("kernel_mcp.prompt_tool.read", lambda text: {"behavior": "allow"})

    async def all_of_it() -> dict[str, Any]:
        session = bench.kit().open()
        await session.start()
        question = PermissionCall(tool=session.toolbox.by_name["mcp__good__user_only"], input={}, cwd="/", mode="default")
        answer = await PromptTool(session, "mcp__good__echo")(question, Verdict(behavior="ask"), "c1")
        await session.close()
        return answer

    assert anyio.run(all_of_it) == {"behavior": "deny", "message": NEEDS_PERSON}


# -- calls that take long -----------------------------------------------------------------------------------------------------
def test_a_long_call_goes_on_in_the_background(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn ends; the result arrives as a letter, and starts the next one."""
    monkeypatch.setenv("CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS", "300")
    monkeypatch.setenv("MCP_CONNECTION_NONBLOCKING", "0")

    async def all_of_it() -> None:
        made = bench.kit(call("mcp__good__progress", "call_long"), text("one"), text("two"), print_mode=False)
        session = made.open()
        done = await made.run("go", session)
        task = f"m{'call_long'[-8:]}"
        assert f"in the background as {task}" in done.result_of("call_long")["content"] and task in session.background_tasks
        live = {"task_id": task, "task_type": "mcp_call", "description": session.background_tasks[task]["description"]}
        assert told(made) == [[live]]
        with anyio.fail_after(10):
            await session.inbox.arrival()
        assert told(made) == [[live], []]
        assert not session.background_tasks and not session.inbox.awaited
        await session.submit(None)
        assert "<status>completed</status>" in json.dumps(made.model.requests[-1]["messages"][-1])
        await session.close()

    def told(made: Kit) -> list[Any]:
        return [m.data["tasks"] for m in made.outputs if isinstance(m, SystemMessage) and m.subtype == "background_tasks_changed"]

    anyio.run(all_of_it)


def test_a_call_in_the_background_can_be_stopped(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS", "200")
    monkeypatch.setenv("MCP_CONNECTION_NONBLOCKING", "0")
    log = tmp_path / "log"

    async def all_of_it() -> None:
        made = bench.kit(call("mcp__good__slow", "call_slow"), text("one"), print_mode=False, args=("--log", str(log)))
        session = made.open()
        await made.run("go", session)
        (task,) = session.plugin_state["tasks"].values()
        await task.stop()
        assert task.status == "killed" and not session.background_tasks and not len(session.inbox)
        await session.close()

    anyio.run(all_of_it)
    assert "notifications/cancelled" in log.read_text()


@pytest.mark.parametrize(("print_mode", "switch", "moved"), [(True, "", False), (True, "1", True), (False, "", True)])
def test_where_calls_are_moved(bench: Bench, monkeypatch: pytest.MonkeyPatch, print_mode: bool, switch: str, moved: bool) -> None:
    monkeypatch.setenv("CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS", "300")
    monkeypatch.setenv("MCP_CONNECTION_NONBLOCKING", "0")
    monkeypatch.setenv("CLAUDE_AUTO_BACKGROUND_TASKS", switch)
    done = bench.run(bench.kit(call("mcp__good__progress", "c1"), text("done"), print_mode=print_mode))
    assert ("in the background" in done.result_of("c1")["content"]) is moved
