"""What an evaluating model's answer comes to: the table of section 6.5, event by event."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from kernel_command_hooks.facts import FACTS
from kernel_command_hooks.run_mcp import fill as fill_input
from kernel_command_hooks.run_prompt import fill
from kernel_command_hooks.verdict import Verdict, effect, read_verdict

from kernel import EVENTS, Answer, Event

COMMON = {"session_id": "s", "transcript_path": "/t", "cwd": "/"}
FIELDS: dict[str, dict[str, Any]] = {
    "Stop": {"stop_hook_active": False}, "PreToolUse": {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "t"},
    "SubagentStop": {"stop_hook_active": False, "agent_transcript_path": "/t"},
    "PostToolUse": {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "t", "tool_response": ""},
    "PostToolUseFailure": {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "t", "error": "e"},
    "PermissionRequest": {"tool_name": "Bash", "tool_input": {}},
    "PermissionDenied": {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "t", "reason": "r"},
    "PostToolBatch": {"tool_calls": []}, "UserPromptSubmit": {"prompt": "p"}, "TeammateIdle": {"teammate_name": "b"},
    "UserPromptExpansion": {"expansion_type": "slash_command", "command_name": "c", "command_args": "", "prompt": "/c"},
    "TaskCreated": {"task_id": "1", "task_subject": "s"}, "TaskCompleted": {"task_id": "1", "task_subject": "s"},
}


def event(name: str, **more: Any) -> Event:
    return EVENTS[name](**COMMON, **FIELDS[name], **more)


def says(answer: Answer | None) -> str:
    """One word for what an answer does."""
    if answer is None:
        return "nothing"
    words = []
    if getattr(answer, "permission_decision", None) == "deny":
        words.append("deny")
    if answer.decision == "block":
        words.append("block")
    if not answer.continue_:
        words.append("end")
    return " ".join(words)


@pytest.mark.parametrize(("name", "default", "going_on"), [
    ("Stop", "block", "block"),
    ("SubagentStop", "block", "block"),
    ("PreToolUse", "deny end", "deny"),
    ("PostToolUse", "end", "block"),
    ("PostToolBatch", "end", "end"),
    ("UserPromptSubmit", "end", "end"),
    ("UserPromptExpansion", "end", "end"),
    ("PostToolUseFailure", "block", "block"),
    ("TaskCreated", "block", "block"),
    ("TaskCompleted", "block", "block"),
    ("TeammateIdle", "end", "block"),
    ("PermissionRequest", "nothing", "nothing"),
    ("PermissionDenied", "nothing", "nothing"),
])
def test_an_objection_has_the_documented_effect(name: str, default: str, going_on: str) -> None:
    no = Verdict(ok=False, reason="because")
    for go_on, expected in ((False, default), (True, going_on)):
        answer: Any = effect(event(name), no, go_on=go_on)
        assert says(answer) == expected
        if answer is not None:
            assert "because" in (answer.reason, answer.stop_reason, getattr(answer, "permission_decision_reason", None))
    assert effect(event(name), Verdict(ok=True), go_on=False) is None


def test_every_event_that_takes_evaluators_is_in_the_table() -> None:
    assert {name for name, facts in FACTS.items() if "prompt" in facts.types} == set(FIELDS)


def test_a_teammates_task_stops_the_teammate() -> None:
    done = event("TaskCompleted", teammate_name="builder")
    assert says(effect(done, Verdict(ok=False, reason="r"), go_on=False)) == "end"
    assert says(effect(done, Verdict(ok=False, reason="r"), go_on=True)) == "block"


@pytest.mark.parametrize("name", ["Stop", "SubagentStop"])
def test_impossible_lets_a_turn_end_for_prompts_only(name: str) -> None:
    verdict = Verdict(ok=False, reason="r", impossible=True)
    assert effect(event(name), verdict, go_on=False) is None
    assert says(effect(event(name), verdict, go_on=True, may_give_up=False)) == "block"


@pytest.mark.parametrize("name", ["PreToolUse", "PostToolUse"])
def test_where_the_turn_ends_the_person_gets_a_warning_line(name: str) -> None:
    answer = effect(event(name), Verdict(ok=False, reason="risky"), go_on=False)
    assert answer is not None and answer.system_message == answer.stop_reason == "risky"


@pytest.mark.parametrize(("text", "verdict"), [
    ('{"ok": true}', Verdict(ok=True)),
    (' \n{"ok": false, "reason": "r", "more": 1}\n', Verdict(ok=False, reason="r")),
    ('```json\n{"ok": false, "reason": "r", "impossible": true}\n```', Verdict(ok=False, reason="r", impossible=True)),
    ('```\n{"ok": true}\n```', Verdict(ok=True)),
])
def test_a_verdict_is_read(text: str, verdict: Verdict) -> None:
    assert read_verdict(text) == verdict


@pytest.mark.parametrize("text", [
    "", "I think this is fine.", '{"ok": "yes"}', '{"reason": "r"}', '{"ok": false}', '{"ok": false, "reason": " "}', "[true]",
    'Sure: {"ok": true}', '{"ok": true} {"ok": false}', '{"ok": tru', "[" * 5000, '{"ok": false, "reason": 3}'])
def test_anything_else_is_no_verdict(text: str) -> None:
    with pytest.raises(ValueError, match="the evaluator must"):
        read_verdict(text)


@pytest.mark.parametrize(("prompt", "filled"), [
    ("Is it done?", 'Is it done?\n\n{"a":1}'),
    ("Look: $ARGUMENTS.", 'Look: {"a":1}.'),
    ("$ARGUMENTS and $ARGUMENTS", '{"a":1} and {"a":1}'),
    (r"Cost \$1.00: $ARGUMENTS", 'Cost $1.00: {"a":1}'),
    (r"\$ARGUMENTS", '$ARGUMENTS\n\n{"a":1}'),
    ("$ARGUMENTSX", '$ARGUMENTSX\n\n{"a":1}'),
    (r"a\b $x", 'a\\b $x\n\n{"a":1}'),
])
def test_arguments_are_filled_in(prompt: str, filled: str) -> None:
    assert fill(prompt, '{"a":1}') == filled


@pytest.mark.parametrize(("given", "filled"), [
    ("${tool_input.file_path}", "/a"),
    ("file:${tool_input.file_path}!", "file:/a!"),
    ("${tool_input.lines}", [1, 2]),
    ("n=${tool_input.lines}", "n=[1,2]"),
    ("${tool_input.lines.1}", 2),
    ("${tool_input.lines.9}", ""),
    ("${no.such}", ""),
    ("<${no.such}>", "<>"),
    ("${tool_input}", {"file_path": "/a", "lines": [1, 2]}),
    ({"k": ["${tool_input.file_path}", 3, None, True]}, {"k": ["/a", 3, None, True]}),
    ("$tool_input ${", "$tool_input ${"),
])
def test_placeholders_of_a_tools_input(given: Any, filled: Any) -> None:
    assert fill_input(given, {"tool_input": {"file_path": "/a", "lines": [1, 2]}}) == filled


@given(st.text())
def test_whatever_a_model_says_is_a_verdict_or_a_value_error(text: str) -> None:
    try:
        verdict = read_verdict(text)
    except ValueError:
        return
    assert verdict.ok or verdict.reason


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(
    st.text(), inner), max_leaves=10)


@given(JSON, st.dictionaries(st.text(), JSON))
def test_filling_keeps_what_holds_no_placeholder(value: Any, event: dict[str, Any]) -> None:
    filled = fill_input(value, event)
    assert filled == value or "${" in str(value)


@given(st.text(), st.text(alphabet=st.characters(exclude_characters="$\\")))
def test_the_arguments_are_always_there(prompt: str, arguments: str) -> None:
    assert arguments in fill(prompt, arguments)
