"""What many answers to one event come to (hooks contract, 12.2 and 13.4), as decision tables and as invariants."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from kernel import events as e, events as r
from kernel.answers import Answer, Decision
from kernel.dispatch import Outcome
from kernel.events import ANSWERS, EVENTS, Event
from kernel.merge import NOTHING, STRICTNESS, Merged, Text, merge

COMMON: dict[str, Any] = {"session_id": "s", "transcript_path": "/t", "cwd": "/"}
PRE = e.PreToolUse(**COMMON, tool_name="Bash", tool_input={}, tool_use_id="1")
POST = e.PostToolUse(**COMMON, tool_name="Bash", tool_input={}, tool_use_id="1", tool_response="x")
ASK = e.PermissionRequest(**COMMON, tool_name="Bash", tool_input={})
STOP = e.Stop(**COMMON, stop_hook_active=False)
PROMPT = e.UserPromptSubmit(**COMMON, prompt="hi")
START = e.SessionStart(**COMMON, source="startup")


def come_to(event: Event, *answers: Answer | Exception | None) -> Merged:
    """Merge answers of plugins a, b, c ... given in call order."""
    outcomes = []
    for plugin, answer in zip("abcdefghij", answers, strict=False):
        if isinstance(answer, Answer) and not answer.source:
            answer.source = plugin
        outcomes.append(Outcome(plugin, None if isinstance(answer, Exception) else answer,
                                answer if isinstance(answer, Exception) else None, 0.0))
    return merge(event, outcomes)


def texts(found: list[Text]) -> list[tuple[str, str]]:
    return [(t.source, t.text) for t in found]


def test_no_answer_comes_to_nothing() -> None:
    assert merge(STOP, []) is NOTHING
    silent = come_to(STOP, None, r.StopResult())
    assert silent == Merged() == NOTHING


# -- PreToolUse ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("decisions", [c for n in range(1, 4) for c in itertools.product((*STRICTNESS, None), repeat=n)])
def test_deny_beats_defer_beats_ask_beats_allow(decisions: tuple[Any, ...]) -> None:
    merged = come_to(PRE, *(r.PreToolUseResult(permission_decision=d, permission_decision_reason=f"{d}!") for d in decisions))
    given_ = [d for d in STRICTNESS if d in decisions]
    assert merged.decision == (given_[0] if given_ else None)
    assert texts(merged.reasons) == [(p, f"{d}!") for p, d in zip("abc", decisions, strict=False) if d and d == merged.decision]


@pytest.mark.parametrize(("answer", "decision", "reason"), [
    (r.PreToolUseResult(decision="block", reason="old"), "deny", "old"),
    (r.PreToolUseResult(decision="approve", reason="old"), "allow", "old"),
    (r.PreToolUseResult(decision="block", reason="old", permission_decision="allow", permission_decision_reason="new"),
     "allow", "new"),
    (r.PreToolUseResult(decision="approve", reason="old", permission_decision="deny", permission_decision_reason="new"),
     "deny", "new"),
    (r.PreToolUseResult(decision="block"), "deny", "Blocked by a"),
])
def test_the_deprecated_form_counts_unless_the_new_one_is_there(answer: Answer, decision: str, reason: str) -> None:
    merged = come_to(PRE, answer)
    assert (merged.decision, merged.reason) == (decision, reason)


def test_a_rewrite_survives_an_ask_of_a_sibling() -> None:
    merged = come_to(PRE, r.PreToolUseResult(updated_input={"x": 1}), r.PreToolUseResult(permission_decision="ask"))
    assert merged.decision == "ask"
    assert merged.updated_input is not None and merged.updated_input.value == {"x": 1}


@pytest.mark.parametrize(("ranks", "winner"), [((0, 0, 0), "c"), ((2, 1, 0), "a"), ((0, 5, 5), "c"), ((1, 2, 0), "b")])
@pytest.mark.parametrize(("event", "make"), [
    (PRE, lambda v: r.PreToolUseResult(updated_input={"by": v})),
    (ASK, lambda v: r.PermissionRequestResult(permission=Decision(behavior="allow", updated_input={"by": v}))),
    (POST, lambda v: r.PostToolUseResult(updated_tool_output={"by": v})),
])
def test_the_rewrite_that_finished_last_counts_and_the_losers_are_named(
        event: Event, make: Any, ranks: tuple[int, ...], winner: str) -> None:
    answers = []
    for plugin, rank in zip("abc", ranks, strict=True):
        answers.append(made := make(plugin))
        made.rank = rank
    merged = come_to(event, *answers)
    rewrite = merged.updated_input or merged.updated_output
    assert rewrite is not None
    assert (rewrite.source, rewrite.value) == (winner, {"by": winner})
    assert sorted(rewrite.losers) == sorted(set("abc") - {winner})


@pytest.mark.parametrize("value", [{}, [], "", 0, False])
def test_an_empty_rewrite_is_a_rewrite(value: Any) -> None:
    merged = come_to(POST, r.PostToolUseResult(updated_tool_output=value))
    assert merged.updated_output is not None and merged.updated_output.value == value


def test_the_old_name_of_the_output_rewrite_counts_too() -> None:
    merged = come_to(POST, r.PostToolUseResult(updated_mcp_tool_output="old"))
    assert merged.updated_output is not None and merged.updated_output.value == "old"
    both = come_to(POST, r.PostToolUseResult(updated_mcp_tool_output="old", updated_tool_output="new"))
    assert both.updated_output is not None and both.updated_output.value == "new" and both.updated_output.losers == ()


# -- PermissionRequest ----------------------------------------------------------------------------------------------------
ALLOW = {"behavior": "allow"}
DENY = {"behavior": "deny"}


@pytest.mark.parametrize(("given_", "behavior"), [
    ([], None), ([None], None), ([ALLOW], "allow"), ([DENY], "deny"), ([ALLOW, DENY], "deny"), ([DENY, ALLOW], "deny"),
    ([None, ALLOW, None], "allow"), ([ALLOW, ALLOW, DENY], "deny")])
def test_a_refusal_beats_a_permission(given_: list[Any], behavior: str | None) -> None:
    answers = [r.PermissionRequestResult(permission=Decision(**d) if d else None) for d in given_]
    assert come_to(ASK, *answers).behavior == behavior


def test_what_goes_with_the_losing_answer_is_dropped() -> None:
    rule = {"type": "setMode", "mode": "plan", "destination": "session"}
    merged = come_to(
        ASK,
        r.PermissionRequestResult(permission=Decision(behavior="allow", updated_input={"x": 1}, updated_permissions=[rule])),
        r.PermissionRequestResult(permission=Decision(behavior="deny", message="no", interrupt=True)),
        r.PermissionRequestResult(permission=Decision(behavior="deny", message="never")))
    assert merged.behavior == "deny"
    assert texts(merged.messages) == [("b", "no"), ("c", "never")]
    assert merged.interrupt
    assert merged.updated_input is None and merged.updated_permissions == []


def test_permission_updates_are_joined() -> None:
    one, two = ({"type": "setMode", "mode": m, "destination": "session"} for m in ("plan", "default"))
    merged = come_to(ASK, *(r.PermissionRequestResult(permission=Decision(behavior="allow", updated_permissions=[u]))
                            for u in (one, two)))
    assert merged.updated_permissions == [one, two]


def test_a_top_level_decision_answers_no_permission_question() -> None:
    merged = come_to(ASK, r.PermissionRequestResult(decision="approve"), r.PermissionRequestResult(decision="block"))
    assert merged.behavior is None


# -- texts and flags ------------------------------------------------------------------------------------------------------
def test_one_block_is_enough_and_its_reasons_are_joined_in_call_order() -> None:
    merged = come_to(STOP, r.StopResult(decision="block", reason="one"), r.StopResult(),
                     r.StopResult(decision="approve", reason="x"), r.StopResult(decision="block", reason="two"))
    assert merged.blocked
    assert texts(merged.block_reasons) == [("a", "one"), ("d", "two")]
    assert merged.block_reason == "one\ntwo"


def test_one_continue_false_is_enough_and_all_stop_reasons_are_kept() -> None:
    merged = come_to(STOP, r.StopResult(continue_=False, stop_reason="one"), r.StopResult(stop_reason="unused"),
                     r.StopResult(continue_=False), r.StopResult(continue_=False, stop_reason="two"))
    assert merged.stopped
    assert merged.stop_reason == "one\ntwo"


def test_contexts_and_system_messages_are_all_kept_in_call_order() -> None:
    merged = come_to(STOP, *(r.StopResult(additional_context=f"context {n}", system_message=f"message {n}") for n in (1, 2)))
    assert texts(merged.contexts) == [("a", "context 1"), ("b", "context 2")]
    assert texts(merged.system_messages) == [("a", "message 1"), ("b", "message 2")]


def test_retry_titles_and_watch_paths() -> None:
    denied = e.PermissionDenied(**COMMON, tool_name="x", tool_input={}, tool_use_id="1", reason="r")
    assert come_to(denied, r.PermissionDeniedResult(retry=False), r.PermissionDeniedResult(retry=True)).retry
    assert not come_to(denied, r.PermissionDeniedResult(retry=False)).retry
    started = come_to(START, r.SessionStartResult(session_title="one", rank=2), r.SessionStartResult(session_title="two", rank=1))
    assert started.last["session_title"] == "one"
    moved = e.CwdChanged(**COMMON, old_cwd="/", new_cwd="/x")
    assert come_to(moved, r.CwdChangedResult(watch_paths=["b", "a"]), r.CwdChangedResult(watch_paths=["c", "a"])).watch_paths \
        == ["a", "b", "c"]
    assert come_to(moved, r.CwdChangedResult(watch_paths=[])).watch_paths == []
    assert come_to(moved, r.CwdChangedResult()).watch_paths is None


def test_the_first_worktree_counts() -> None:
    event = e.WorktreeCreate(**COMMON, name="x")
    answers = [r.WorktreeCreateResult(worktree_path=path) for path in (None, "/one", "/two")]
    assert come_to(event, *answers).last["worktree_path"] == "/one"


@pytest.mark.parametrize(("actions", "action", "content"), [
    (["accept"], "accept", 0), (["accept", "accept"], "accept", 1), (["accept", "cancel"], "cancel", None),
    (["decline", "cancel", "accept"], "decline", None), (["cancel"], "cancel", None), ([None, "accept"], "accept", 1),
    ([None], None, 0)])
def test_an_elicitation_is_declined_before_it_is_cancelled_before_it_is_accepted(
        actions: list[Any], action: str | None, content: int | None) -> None:
    event = e.Elicitation(**COMMON, mcp_server_name="m", message="?")
    result = e.ElicitationResult(**COMMON, mcp_server_name="m", action="accept")
    for made, kind in ((event, r.ElicitationHookResult), (result, r.ElicitationResultResult)):
        merged = come_to(made, *(kind(action=a, content={"n": n}) for n, a in enumerate(actions)))
        assert merged.last.get("action") == action
        assert merged.last.get("content") == (None if content is None else {"n": content})


# -- failures ---------------------------------------------------------------------------------------------------------------
GATES = {"PreToolUse", "PermissionRequest", "UserPromptSubmit", "UserPromptExpansion", "PreModelSwitch"}


def least(name: str) -> Event:
    values: dict[Any, Any] = {str: "x", bool: False, int: 0, dict[str, Any]: {}, list[dict[str, Any]]: [], Any: None}
    fields = {f.name: values.get(f.type, "x") for f in msgspec.structs.fields(EVENTS[name]) if f.required}
    return EVENTS[name](**fields)


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_a_gate_that_fails_refuses_and_names_its_plugin_and_an_observer_does_not(name: str) -> None:
    event = least(name)
    merged = come_to(event, RuntimeError("boom"), ANSWERS[name]())
    assert type(event).gate == (name in GATES)
    assert texts(merged.failures) == [("a", "RuntimeError: boom")]
    assert merged.blocked == (name in GATES)
    assert ("plugin 'a'" in merged.block_reason and "RuntimeError: boom" in merged.block_reason) == (name in GATES)
    assert not merged.stopped


def test_a_failed_gate_is_a_denial_whatever_the_others_say() -> None:
    pre = come_to(PRE, r.PreToolUseResult(permission_decision="allow"), TimeoutError("no answer within 1 s"))
    assert pre.decision == "deny" and "plugin 'b'" in pre.reason
    ask = come_to(ASK, r.PermissionRequestResult(permission=Decision(behavior="allow")), OSError("gone"))
    assert ask.behavior == "deny" and "plugin 'b'" in ask.messages[0].text
    prompt = come_to(PROMPT, r.UserPromptSubmitResult(), ValueError("x"))
    assert prompt.blocked


# -- the order does not matter --------------------------------------------------------------------------------------------
def _answers(cls: type[Answer], **own: st.SearchStrategy[Any]) -> st.SearchStrategy[Answer]:
    said = st.none() | st.sampled_from(["x", "y", "z"])
    common = {"continue_": st.booleans(), "stop_reason": said, "system_message": said, "reason": said,
              "decision": st.sampled_from([None, None, "approve", "block"])}
    return st.builds(cls, **common, **own)


def _objects() -> st.SearchStrategy[Any]:
    return st.none() | st.dictionaries(st.sampled_from("pq"), st.integers(0, 2), max_size=2)


STRICT = st.sampled_from([None, *STRICTNESS])
DECISIONS = st.none() | st.builds(Decision, behavior=st.sampled_from(["allow", "deny"]), updated_input=_objects(),
                                  message=st.none() | st.sampled_from(["m", "n"]), interrupt=st.booleans())
CASES = st.one_of(
    st.tuples(st.just(PRE), st.lists(_answers(r.PreToolUseResult, permission_decision=STRICT, updated_input=_objects(),
                                              additional_context=st.none() | st.text(max_size=2)), max_size=5)),
    st.tuples(st.just(ASK), st.lists(_answers(r.PermissionRequestResult, permission=DECISIONS), max_size=5)),
    st.tuples(st.just(POST), st.lists(_answers(r.PostToolUseResult, updated_tool_output=_objects()), max_size=5)),
    st.tuples(st.just(STOP), st.lists(_answers(r.StopResult, additional_context=st.none() | st.text(max_size=2)), max_size=5)),
)


@given(CASES, st.sets(st.integers(0, 5), max_size=2), st.randoms(use_true_random=False))
def test_the_order_of_the_answers_changes_the_order_of_texts_only(
        case: tuple[Event, list[Answer]], failed: set[int], random: Any) -> None:
    event, answers = case
    outcomes = []
    for n, answer in enumerate(answers):  # every handler has its own place in the order of completion
        answer.source, answer.rank = f"p{n}", n
        broken = RuntimeError("boom") if n in failed else None
        outcomes.append(Outcome(f"p{n}", None if broken else answer, broken, 0.0))
    shuffled = list(outcomes)
    random.shuffle(shuffled)
    one, other = merge(event, outcomes), merge(event, shuffled)
    for name in ("decision", "blocked", "stopped", "behavior", "interrupt", "retry", "watch_paths", "updated_input",
                 "updated_output", "last"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("reasons", "block_reasons", "stop_reasons", "contexts", "system_messages", "messages", "failures"):
        assert sorted(texts(getattr(one, name))) == sorted(texts(getattr(other, name))), name


@given(CASES)
def test_merging_changes_no_answer(case: tuple[Event, list[Answer]]) -> None:
    event, answers = case
    before = msgspec.json.encode(answers)
    merge(event, [Outcome("p", a, None, 0.0) for a in answers])
    assert msgspec.json.encode(answers) == before
    assert Merged() == NOTHING
