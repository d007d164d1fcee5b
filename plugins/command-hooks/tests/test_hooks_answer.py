"""Exit codes and stdout -> answers (hooks contract, section 11). Pure: nothing runs here."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from kernel_command_hooks.answer import Ran, Reading, read
from kernel_command_hooks.facts import FACTS
from kernel_command_hooks.handlers import Command, Handler

from kernel import EVENTS, Answer, Event

MORE: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup"}, "Setup": {"trigger": "init"}, "SessionEnd": {"reason": "other"},
    "InstructionsLoaded": {"file_path": "/f", "memory_type": "User", "load_reason": "include"},
    "UserPromptSubmit": {"prompt": "p"},
    "UserPromptExpansion": {"expansion_type": "slash_command", "command_name": "c", "command_args": "", "prompt": "/c"},
    "MessageDisplay": {"turn_id": "t", "message_id": "m", "index": 0, "final": True, "delta": "d"},
    "PreToolUse": {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "i"},
    "PermissionRequest": {"tool_name": "Bash", "tool_input": {}},
    "PermissionDenied": {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "i", "reason": "r"},
    "PostToolUse": {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "i", "tool_response": "x"},
    "PostToolUseFailure": {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "i", "error": "e"},
    "PostToolBatch": {"tool_calls": []}, "SubagentStart": {"agent_id": "a", "agent_type": "Explore"},
    "SubagentStop": {"stop_hook_active": False, "agent_transcript_path": "/t", "agent_type": "Explore"},
    "TaskCreated": {"task_id": "1", "task_subject": "s"}, "TaskCompleted": {"task_id": "1", "task_subject": "s"},
    "TeammateIdle": {"teammate_name": "b"}, "WorktreeCreate": {"name": "w"}, "WorktreeRemove": {"worktree_path": "/w"},
    "Stop": {"stop_hook_active": False}, "StopFailure": {"error": "rate_limit"},
    "Notification": {"message": "m", "notification_type": "idle_prompt"}, "ConfigChange": {"source": "skills"},
    "CwdChanged": {"old_cwd": "/a", "new_cwd": "/b"}, "DirectoryAdded": {"directory": "/d", "source": "slash_command"},
    "FileChanged": {"file_path": "/f", "event": "change"}, "PreCompact": {"trigger": "auto", "custom_instructions": ""},
    "PostCompact": {"trigger": "auto", "compact_summary": "s"}, "Elicitation": {"mcp_server_name": "db", "message": "m"},
    "ElicitationResult": {"mcp_server_name": "db", "action": "accept"},
    "PreModelSwitch": {"from_model": "a", "to_model": "b"}, "PostModelSwitch": {"from_model": "a", "to_model": "b"},
}


def event(name: str, **fields: Any) -> Event:
    return EVENTS[name](session_id="s", transcript_path="/t", cwd="/repo", **{**MORE[name], **fields})


def reading(name: str, *, on_failure: Any = None, **ran: Any) -> Reading:
    if isinstance(ran.get("stdout"), dict):
        ran["stdout"] = json.dumps(ran["stdout"])
    handler = Handler(event=name, spec=Command(command="x", on_failure=on_failure), scope="project", where="f")
    return read(event(name), handler, Ran(**ran))


def specific(name: str, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": name, **fields}}


DENY = specific("PreToolUse", permissionDecision="deny", permissionDecisionReason="json says no")
ALLOW = specific("PreToolUse", permissionDecision="allow")
NO_EVENT_NAME = {"hookSpecificOutput": {"permissionDecision": "deny"}}


# -- the table of 11.1, on PreToolUse ----------------------------------------------------------------------------------
@pytest.mark.parametrize(("code", "stdout", "decision", "reason", "notice"), [
    (0, "", None, None, False), (0, "formatted 3 files", None, None, False), (0, DENY, "deny", "json says no", False),
    (0, NO_EVENT_NAME, None, None, True), (0, {}, None, None, False),
    (2, "", "deny", "why", False), (2, "text", "deny", "why", False), (2, DENY, "deny", "json says no", False),
    (2, ALLOW, "deny", "why", False), (2, NO_EVENT_NAME, "deny", "why", False),
    (1, "", None, None, True), (1, "text", None, None, True), (1, DENY, "deny", "json says no", False),
    (1, NO_EVENT_NAME, None, None, True), (137, "", None, None, True),
    (0, "\n\n  " + json.dumps(DENY) + "\n", "deny", "json says no", False),
    (0, "ready\n" + json.dumps(DENY), None, None, False), (0, json.dumps(DENY) + " more", None, None, False),
    (0, '["a"]', None, None, False), (0, {"decision": "deny", "reason": "x"}, None, None, True),
    (0, {"decision": "block", "reason": "old style"}, "deny", "old style", False),
    (0, {"decision": "approve"}, "allow", None, False),
    (0, {**ALLOW, "decision": "block", "reason": "old"}, "allow", "old", False),
])
def test_what_exit_code_and_stdout_come_to(code: int, stdout: Any, decision: Any, reason: Any, notice: bool) -> None:
    out = reading("PreToolUse", code=code, stdout=stdout, stderr="why\nsecond line\n" if code != 2 else "why\n")
    found: Any = out.answer
    assert (found.permission_decision if found else None) == decision
    assert (found.permission_decision_reason if found else None) == reason
    assert bool(out.notice) is notice
    assert bool(out.failed) is notice


def test_a_non_blocking_error_shows_the_first_line_of_stderr() -> None:
    assert reading("PreToolUse", code=1, stderr="blocked!\nsecond").notice == "Failed with non-blocking status code: blocked!"


def test_exit_2_without_stderr_says_so() -> None:
    found: Any = reading("PreToolUse", code=2).answer
    assert found.permission_decision_reason == "No stderr output"


def test_a_death_by_signal_names_the_signal() -> None:
    assert "SIGKILL" in reading("Stop", code=137).notice


@pytest.mark.parametrize("code", [126, 127])
def test_a_program_that_is_missing_is_a_guard_that_does_not_work(code: int) -> None:
    assert reading("PreToolUse", code=code, stderr="sh: nope: not found").guard
    assert reading("PreCompact", code=code, stderr="sh: nope: not found").guard
    assert not reading("Notification", code=code, stderr="sh: nope: not found").notice


def test_a_validation_failure_names_the_field() -> None:
    assert "hookEventName" in reading("PreToolUse", stdout=NO_EVENT_NAME).notice
    out = reading("PostToolUse", stdout={"continue": "false", **specific("PostToolUse", additionalContext="c")})
    assert out.answer is None and "continue" in out.notice


def test_decisions_outside_their_object_are_ignored_and_pointed_out() -> None:
    out = reading("PreToolUse", stdout={"permissionDecision": "deny", "additionalContext": "x"})
    assert out.answer is not None and out.answer.to_wire() == {}
    assert "permissionDecision" in out.warning and not out.notice


def test_lone_surrogates_of_a_cut_text_become_replacement_characters() -> None:
    text = '{"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "cut \\ud83d"}}'
    found: Any = reading("Stop", stdout=text).answer
    assert found.additional_context == "cut \ufffd"


def test_a_cut_stdout_is_plain_text() -> None:
    assert reading("PreToolUse", stdout=json.dumps(DENY), cut=True).answer is None


# -- plain text --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", FACTS)
def test_plain_stdout_is_context_for_the_events_that_say_so(name: str) -> None:
    found: Any = reading(name, stdout="branch: main\n").answer
    if FACTS[name].plain:
        assert found.additional_context == "branch: main"
    elif FACTS[name].output != "worktree":
        assert found is None


def test_plain_stdout_of_a_failure_is_no_context() -> None:
    assert reading("UserPromptSubmit", code=1, stdout="ctx").answer is None


# -- events that take less ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [n for n, f in FACTS.items() if f.output == "discarded"])
def test_discarding_events_keep_nothing(name: str) -> None:
    out = reading(name, stdout={"continue": False, "systemMessage": "sm", "decision": "block", "reason": "r"})
    assert out.answer is None or out.answer.to_wire() == {}
    assert not reading(name, code=1, stderr="x").notice


@pytest.mark.parametrize(("name", "stdout", "kept"), [
    ("MessageDisplay", {"systemMessage": "sm", "continue": False, **specific("MessageDisplay", displayContent="[hidden]")},
     specific("MessageDisplay", displayContent="[hidden]")),
    ("PermissionDenied", {"systemMessage": "sm", **specific("PermissionDenied", retry=True)},
     specific("PermissionDenied", retry=True)),
    ("Notification", {"systemMessage": "sm", **specific("Notification", additionalContext="x")}, {}),
    ("ConfigChange", {"decision": "block", "reason": "secret"}, {"decision": "block"}),
    ("PreCompact", {"decision": "block", "systemMessage": "sm", "continue": False}, {"decision": "block"}),
    ("PostCompact", {"decision": "block", "systemMessage": "sm"}, {}),
    ("SessionStart", {"continue": False, "decision": "block"}, {}),
    ("TaskCreated", {"continue": False, "stopReason": "stop"}, {}),
    ("PermissionRequest", {"decision": "block", "reason": "r"}, {}),
    ("PreToolUse", specific("PreToolUse", permissionDecision="defer", updatedInput={}, additionalContext="x"),
     specific("PreToolUse", permissionDecision="defer")),
])
def test_fields_without_effect_are_put_back(name: str, stdout: dict[str, Any], kept: dict[str, Any]) -> None:
    found: Any = reading(name, stdout=stdout).answer
    assert found.to_wire() == kept


@pytest.mark.parametrize("name", ["PreCompact", "SessionEnd", "TaskCreated"])
def test_an_object_of_its_own_on_an_event_without_one_is_a_schema_failure(name: str) -> None:
    out = reading(name, stdout=specific(name, additionalContext="keep"))
    assert out.answer is None and out.failed
    assert bool(out.notice) is (FACTS[name].output == "standard")


# -- exit code 2 -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", FACTS)
def test_exit_2_has_the_effect_of_its_event(name: str) -> None:
    out, exit2 = reading(name, code=2, stderr="no"), FACTS[name].exit2
    found: Any = out.answer
    if exit2 == "deny":
        assert (found.permission_decision, found.permission_decision_reason) == ("deny", "no")
    elif exit2 == "decline":
        assert (found.action, found.decision) == ("decline", "block")
    elif exit2 == "block":
        assert found.decision == "block" and "no" in found.reason
    else:
        assert found is None
    assert (out.notice == "no") is (exit2 == "notice")


def test_exit_2_keeps_the_other_fields_except_on_elicitations() -> None:
    found: Any = reading("PreToolUse", code=2, stderr="no", stdout={"systemMessage": "sm"}).answer
    assert found.system_message == "sm" and found.permission_decision == "deny"
    accept = specific("Elicitation", action="accept", content={"a": 1})
    found = reading("Elicitation", code=2, stdout=accept).answer
    assert found.action == "decline" and found.content is None
    found = reading("PermissionRequest", code=2, stdout=specific("PermissionRequest", decision={"behavior": "allow"})).answer
    assert found.permission.behavior == "allow"
    shown = reading("CwdChanged", code=2, stderr="stay", stdout={"systemMessage": "env loaded"})
    assert shown.notice == "stay" and shown.answer is not None and shown.answer.system_message == "env loaded"


# -- it did not run ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "seen", "guard"), [
    ("PreToolUse", True, True), ("UserPromptSubmit", True, False), ("MessageDisplay", False, False),
    ("Notification", False, False)])
def test_a_timeout_decides_nothing_and_is_told(name: str, seen: bool, guard: bool) -> None:
    out = reading(name, code=None, timed_out=True, timeout=1.0, stdout=json.dumps(DENY))
    assert out.answer is None and bool(out.notice) is seen and out.guard is guard
    assert not seen or "timed out after 1 s" in out.notice


@pytest.mark.parametrize("ran", [
    {"code": 1}, {"code": 127, "stderr": "not found"}, {"code": None, "timed_out": True, "timeout": 1},
    {"code": None, "error": "gone"}, {"stdout": NO_EVENT_NAME}, {"stdout": "{broken"}])
def test_a_failure_refuses_where_on_failure_says_block(ran: dict[str, Any]) -> None:
    assert reading("PreToolUse", **ran).answer is None
    found: Any = reading("PreToolUse", on_failure="block", **ran).answer
    assert found.permission_decision == "deny" and "set to refuse" in found.permission_decision_reason
    prompt: Any = reading("UserPromptSubmit", on_failure="block", **ran).answer
    assert prompt.decision == "block"
    asked: Any = reading("PermissionRequest", on_failure="block", **ran).answer
    assert asked.permission.behavior == "deny"


def test_success_does_not_refuse_where_on_failure_says_block() -> None:
    assert reading("PreToolUse", on_failure="block").answer is None
    found: Any = reading("PreToolUse", on_failure="block", code=1, stdout=ALLOW).answer
    assert found.permission_decision == "allow"


# -- terminals and worktrees -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("sequence", "counts"), [
    ("\x1b]777;notify;t;b\x07", True), ("\x1b]9;x\x1b\\", True), ("\x07", True), ("\x1b]0;t\x07\x07", True),
    ("\x1b]52;c;AAAA\x07", False), ("\x1b]9;x\x07\x1b[31m", False), ("plain", False), ("\x1b]9;a\nb\x07", False)])
def test_only_harmless_terminal_sequences_count(sequence: str, counts: bool) -> None:
    found = reading("Notification", stdout={"terminalSequence": sequence}).answer
    assert found is not None and (found.terminal_sequence == sequence) is counts


@pytest.mark.parametrize(("ran", "path"), [
    ({"stdout": "Welcome\n\x1b[32m/wt/bold-oak\x1b[0m\n\n"}, "/wt/bold-oak"), ({"stdout": "../wt\n"}, "/wt"),
    ({"stdout": "/wt/../etc"}, None), ({"stdout": ""}, None), ({"code": 1, "stdout": "/wt/x"}, None),
    ({"stdout": specific("WorktreeCreate", worktreePath="/wt/x"), "http": True}, "/wt/x"),
    ({"stdout": specific("WorktreeCreate", worktreePath="wt"), "http": True}, None), ({"http": True}, None),
    ({"code": None, "error": "answered with status 500", "http": True}, None)])
def test_a_worktree_needs_a_path(ran: dict[str, Any], path: str | None) -> None:
    found: Any = reading("WorktreeCreate", **ran).answer
    assert found.worktree_path == path
    assert (found.decision == "block") is (path is None)


# -- strangers ---------------------------------------------------------------------------------------------------------
KEYS = st.sampled_from(["continue", "decision", "hookSpecificOutput", "hookEventName", "x"])
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(KEYS, inner, max_size=4), max_leaves=8)


@given(st.sampled_from(sorted(FACTS)), st.integers(0, 255), st.text(max_size=50) | JSON.map(json.dumps), st.text(max_size=20))
def test_whatever_a_handler_prints_is_read(name: str, code: int, stdout: str, stderr: str) -> None:
    out = reading(name, code=code, stdout=stdout, stderr=stderr)
    assert out.answer is None or isinstance(out.answer, Answer)
