"""What is recorded beside a transcript, through real runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from kernel_inspector.log import Log, record_of
from kernel_inspector.recorder import Recorder

from kernel import ModelError, PreToolUse, PreToolUseResult, Session, Tool, ToolResult
from kernel.testing import Kit, Turn, call, module, provides, text

pytestmark = [
    pytest.mark.usefixtures("home"),
    pytest.mark.skipif(not provides("stores", "files"), reason="needs a store of files"),
]
SECRET = "sk-not-for-any-record"


class Look(Tool):
    name = "Look"
    description = "Looks."
    input_schema = {"type": "object", "properties": {"at": {"type": "string"}}}

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    async def call(self, input: dict[str, Any], context: Any) -> ToolResult:
        await anyio.lowlevel.checkpoint()
        return ToolResult(content=f"seen {input.get('at')} {SECRET}")


def kit(tmp_path: Path, *turns: Any, **more: Any) -> Kit:
    return Kit(tmp_path, turns, installed=["sessions", "inspector"], tools=[Look()], **{"persist": True, **more})


def record(session: Session) -> list[dict[str, Any]]:
    return [json.loads(line) for line in record_of(session.transcript.path).read_text().splitlines()]


def of(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["kind"] == kind]


def test_requests_tools_and_decisions_are_recorded_and_texts_are_not(tmp_path: Path) -> None:
    run = kit(tmp_path, [call("Look", "a", at="x"), call("Look", "b", at="y")], text("both")).play(f"look, {SECRET}")
    path = record_of(run.session.transcript.path)
    lines = record(run.session)
    assert [line["kind"] for line in lines][:2] == ["session", "parts"]
    first, second = of(lines, "request")
    assert first["stop"] == "tool_use" and first["message"] and first["fresh"] == 10 and first["out"] == 5
    assert first["sizes"]["user"] == len(f"look, {SECRET}") and (first["same"], first["messages"]) == (0, 1)
    assert (second["same"], second["messages"]) == (1, 3) and second["parts"] == first["parts"] == of(lines, "parts")[0]["id"]
    assert {t["name"] for t in of(lines, "parts")[0]["tools"]} == {"Look"}
    assert {(t["call"], t["status"]) for t in of(lines, "tool")} == {("a", "success"), ("b", "success")}
    assert {(d["call"], d["behavior"]) for d in of(lines, "decision")} == {("a", "allow"), ("b", "allow")}
    assert of(lines, "result")[0]["subtype"] == "success"
    assert SECRET not in path.read_text() and "seen" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700


def test_a_hook_that_refuses_is_recorded_with_its_reason_and_one_that_allows_without(tmp_path: Path) -> None:
    def guard(event: PreToolUse) -> PreToolUseResult:
        deny = event.tool_input["at"] == "x"
        return PreToolUseResult(
            permission_decision="deny" if deny else "allow",
            permission_decision_reason="not there" if deny else SECRET,
            additional_context="four",
        )

    run = kit(
        tmp_path, [call("Look", "a", at="x"), call("Look", "b", at="y")], text("so"), hooks={"guard": module(pre_tool_use=guard)}
    ).play("look")
    said = {line["call"]: line["by"][0] for line in of(record(run.session), "hooks") if line["event"] == "PreToolUse"}
    assert said["a"]["plugin"] == "guard"
    assert said["a"]["says"] == {"permissionDecision": "deny", "permissionDecisionReason": "not there", "additionalContext": 4}
    assert said["b"]["says"]["permissionDecisionReason"] == len(SECRET)


def test_a_hook_that_fails_is_recorded_and_silent_ones_only_at_the_gate(tmp_path: Path) -> None:
    def silent(event: Any) -> None:
        return None

    def broken(event: Any) -> None:
        raise RuntimeError("no such table")

    run = kit(
        tmp_path,
        call("Look", "a", at="x"),
        text("so"),
        hooks={"silent": module(pre_tool_use=silent, post_tool_use=silent, stop=broken)},
    ).play("look")
    lines = of(record(run.session), "hooks")
    assert [line["event"] for line in lines] == ["PreToolUse", "Stop"]
    assert lines[1]["by"][0]["error"] == "RuntimeError: no such table"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("[User] curl -H 'Authorization: Bearer abcd1234' https://x", "[User] curl -H 'Authorization: Bearer ***' https://x"),
        ("TOKEN=abcd1234 run.sh --password hunter22", "TOKEN=*** run.sh --password ***"),
        ('{"api_key": "sk-abcdef"}', '{"api_key": "***"}'),
        ('[User] python3 "$CLAUDE_PROJECT_DIR/guard.py"', '[User] python3 "$CLAUDE_PROJECT_DIR/guard.py"'),
        ("x" * 1000, "x" * 300),
    ],
)
def test_commands_and_errors_are_kept_without_what_looks_like_a_secret(text: str, kept: str) -> None:
    from kernel_inspector.recorder import _discreet

    assert _discreet(text) == kept


def test_an_interrupted_request_is_recorded_as_cut(tmp_path: Path) -> None:
    async def play() -> Session:
        made = kit(tmp_path, text("never heard"))
        session = made.open()

        async def slow(request: Any) -> Any:
            session.interrupt()
            await anyio.sleep(60)
            yield {}

        made.model.stream = slow
        session.fold()
        await session.submit("go")
        await session.close()
        return session

    (request,) = of(record(anyio.run(play)), "request")
    assert request["cut"] and "error" not in request


def test_a_person_who_is_asked_is_recorded_with_the_time_that_was_waited(tmp_path: Path) -> None:
    async def play() -> Session:
        made = kit(tmp_path, call("Look", "a", at="x"), text("so"), policy=lambda name, input: "ask")
        session = made.open()

        async def person(*_: Any) -> dict[str, Any]:
            await anyio.sleep(0.05)
            return {"behavior": "allow", "updatedInput": {"at": "z"}}

        session.asker = person
        await session.submit("look")
        await session.close()
        return session

    lines = record(anyio.run(play))
    (approval,), (decision,) = of(lines, "approval"), of(lines, "decision")
    assert approval["behavior"] == "allow" and approval["rewrote"] and approval["ms"] >= 50
    assert decision["call"] == "a" and decision["ms"] >= approval["ms"]


def test_failed_requests_are_recorded_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel.testing import FakeClock

    busy = Turn(fail=ModelError("busy", status=529, kind="overloaded_error"))
    run = kit(tmp_path, busy, busy, text("at last"), clock=FakeClock()).play("go")
    requests = of(record(run.session), "request")
    assert [r.get("error") for r in requests] == [{"kind": "overloaded_error", "status": 529}] * 2 + [None]
    assert run.text == "at last"


def test_what_broke_the_cache_can_be_told(tmp_path: Path) -> None:
    async def play() -> Session:
        made = kit(tmp_path, text("one"), text("two"), text("three"))
        session = made.open()
        await session.submit("first")
        session.rewrite([("user", [{"type": "text", "text": "summed up"}]), ("assistant", [{"type": "text", "text": "one"}])])
        await session.submit("second")
        await session.submit("third")
        await session.close()
        return session

    requests = of(record(anyio.run(play)), "request")
    assert [(r["same"], r["messages"]) for r in requests] == [(0, 1), (0, 3), (3, 5)]


def test_a_cleared_conversation_goes_on_in_a_record_of_its_own(tmp_path: Path) -> None:
    async def play() -> tuple[Path, Session, str]:
        session = kit(tmp_path, text("one"), text("two")).open()
        await session.submit("first")
        old = record_of(session.transcript.path)
        new = await session.clear()
        await session.submit("second")
        await session.close()
        return old, session, new

    old, session, new = anyio.run(play)
    before = [json.loads(line) for line in old.read_text().splitlines()]
    assert of(before, "cleared") and of(before, "cleared")[0]["to"] == new and len(of(before, "request")) == 1
    assert len(of(record(session), "request")) == 1 and record(session)[0]["kind"] == "session"


@pytest.mark.parametrize("off", [{"persist": False}, {"settings": {"kernel": {"inspector": {"record": False}}}}])
def test_nothing_is_recorded_where_it_is_switched_off_or_nothing_is_kept(tmp_path: Path, off: dict[str, Any]) -> None:
    run = kit(tmp_path, call("Look", "a", at="x"), text("so"), **off).play("look")
    assert not list(tmp_path.rglob("inspect.jsonl"))
    assert not any(isinstance(m, Recorder) for m in run.session.middleware)


def test_a_session_without_a_request_leaves_no_record(tmp_path: Path) -> None:
    async def play() -> None:
        session = kit(tmp_path).open()
        await session.start()
        await session.close()

    anyio.run(play)
    assert not list(tmp_path.rglob("inspect.jsonl"))


@pytest.mark.parametrize("fault", ["folder", "link", "clock", "rules"])
def test_a_recorder_that_cannot_write_changes_nothing(tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands around gates: what it raised would refuse the call."""
    if fault == "rules":
        monkeypatch.setattr(Recorder, "_file_of", lambda self, verdict: 1 / 0)
    if fault == "clock":
        monkeypatch.setattr("kernel_inspector.recorder._now", lambda session: 1 / 0)
    places = {"folder": Path("/proc/nowhere/inspect.jsonl"), "link": tmp_path / "link"}
    monkeypatch.setattr("kernel_inspector.recorder.record_of", lambda path: places.get(fault) or record_of(path))
    (tmp_path / "link").symlink_to(tmp_path / "target")
    run = kit(tmp_path, call("Look", "a", at="x"), text("so")).play("look")
    assert run.text == "so" and run.ran == ["a"] and not (tmp_path / "target").exists()


def test_a_record_is_bounded_and_a_torn_line_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s" / "inspect.jsonl"
    path.parent.mkdir()
    path.write_bytes(b'{"kind":"torn')
    monkeypatch.setattr("kernel_inspector.log.LIMIT", 400)
    log = Log(path)
    log.write({"kind": "waits"})
    assert path.read_bytes() == b'{"kind":"torn'
    log.begin()
    for n in range(100):
        log.write({"kind": "n", "n": n})
    log.close()
    lines = path.read_bytes().split(b"\n")
    assert lines[1] == b'{"kind":"waits"}' and lines[-2] == b'{"kind":"full"}' and os.path.getsize(path) < 450


def test_a_subagent_writes_into_the_record_of_its_conversation(played: Path) -> None:
    lines = [json.loads(line) for line in record_of(played).read_text().splitlines()]
    agents = {p.stem.removeprefix("agent-") for p in played.with_suffix("").rglob("agent-*.jsonl")}
    assert len(agents) == 2
    assert {line["agent"] for line in of(lines, "request") if "agent" in line} == agents
    asked = next(line for line in of(lines, "hooks") if line["event"] == "PermissionRequest")
    assert asked["call"] == of(lines, "approval")[0]["call"], "the event does not name its call, the record does"
