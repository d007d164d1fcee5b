"""The measures of the contract's section 8, by definition; and that no run can break what reads it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings, strategies as st
from kernel_evals import measures
from kernel_evals.checks import why_not
from kernel_evals.measures import Point, points, rates, summary
from kernel_evals.play import Played
from kernel_evals.suite import CallCheck, Check, MeasureCheck, RequestCheck


def played(*steps: tuple[str, dict[str, Any], str, str | None], requests: list[dict[str, Any]] | None = None) -> Played:
    """Calls as (tool, input, status, error code); a status ``-`` stands for a call that never ran."""
    messages, trace = [], list(requests or [])
    for n, (tool, input, status, code) in enumerate(steps):
        asked = {"type": "tool_use", "id": f"c{n}", "name": tool, "input": input}
        messages.append({"type": "assistant", "message": {"content": [asked]}})
        text = f"<tool_use_error>{code}: wrong</tool_use_error>" if status == "-" and code else f"text of {input}"
        messages.append({"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": f"c{n}", "content": text, "is_error": bool(code) or status == "-"}]}})
        if status != "-":
            trace.append({"kind": "call", "tool": tool, "id": f"c{n}", "input": input, "status": status, "error_code": code,
                          "ms": 5.0, "text": text, "evidence": [f"ev_{n}"]})
    messages.append({"type": "result", "subtype": "success", "terminal_reason": "completed", "num_turns": 3, "duration_ms": 100,
                     "result": "The text of it [ev_1]. It is not [ev_99].", "is_error": False})
    return Played(messages=messages, trace=trace, before={}, after={}, exit_code=0, stderr="")


def count(found: list[Point], name: str, **attributes: Any) -> float:
    return sum(p.value for p in found if p.name == name and attributes.items() <= p.attributes.items())


def test_each_measure_by_its_definition() -> None:
    run = played(("Read", {"a": 7}, "-", "invalid_arguments"), ("Read", {"a": "x"}, "success", None),
                 ("Raed", {}, "-", "unknown_tool"), ("Grep", {"p": "A"}, "empty", None),
                 ("Grep", {"p": "b"}, "success", None), ("Bash", {"c": "rm"}, "-", None),
                 ("Glob", {"p": "z"}, "empty", None), ("Read", {"a": "x"}, "success", None),
                 requests=[{"kind": "request", "compacted": True, "messages": [{"content": "the fact"}], "ms": 20.0,
                            "ttft_ms": 3.0, "usage": {"input_tokens": 25, "cache_read_input_tokens": 75, "output_tokens": 4}},
                           {"kind": "event", "event": "PreCompact", "trigger": "auto", "plugins": [["p", 1.5, False]]},
                           {"kind": "event", "event": "PostCompact", "plugins": []},
                           {"kind": "decision", "tool": "Bash", "behavior": "deny", "source": "rule"},
                           {"kind": "decision", "tool": "Read", "behavior": "allow", "source": "mode"}])
    found = points(run, ["the fact", "another"])
    assert count(found, "kernel.run.count", outcome="success", terminal_reason="completed") == 1
    assert count(found, "kernel.run.tool_calls") == 8 and count(found, "kernel.run.turns") == 3
    assert count(found, "kernel.tool.call.count", error_code="invalid_arguments") == 1
    assert count(found, "kernel.tool.call.count", tool="Bash", status="blocked", error_code="permission_denied") == 1
    assert count(found, "kernel.tool.first_try", tool="Read") == 2, "the call behind an invalid one is the same intent"
    assert count(found, "kernel.tool.first_try", tool="Read", ok=False) == 1
    assert count(found, "kernel.tool.first_try", tool="Raed", ok=False) == 1
    assert count(found, "kernel.tool.empty", recovered=True) == 1
    assert count(found, "kernel.tool.empty", tool="Glob", recovered=False) == 1
    assert count(found, "kernel.tool.repeat", tool="Read", action="noted") == 1
    assert count(found, "kernel.tool.decision", decision="reject", source="rule") == 1
    assert count(found, "kernel.compaction.count", trigger="auto", success=True) == 1
    assert count(found, "kernel.compaction.probe", ok=True) == 1 and count(found, "kernel.compaction.probe", ok=False) == 1
    assert count(found, "kernel.citation.count", exists=False, supports=False) == 1
    assert count(found, "kernel.citation.count", exists=True, supports=True) == 1
    assert count(found, "claude_code.token.usage", type="cacheRead") == 75
    assert [p.value for p in found if p.name == "kernel.cache.read_ratio"] == [0.75]
    assert count(found, "kernel.hook.duration", plugin="p", event="PreCompact") == 1.5
    assert count(found, "kernel.loop.overhead") == 100 - 20 - 5 * 5
    shares = rates(found)
    assert shares["invalid tool-call ratio"] == 0.25 and shares["permission block rate"] == 0.5
    assert shares["recovery after empty results"] == 0.5 and shares["right recovery after compaction"] == 0.5
    assert rates([]) == dict.fromkeys(shares)
    rows = summary(found)
    assert {"metric": "kernel.request.ttft", "query_source": "main", "n": 1, "median": 3.0, "max": 3.0} in rows
    json.dumps(rows)


def test_a_call_is_made_refused_failed_or_never() -> None:
    run = played(("Bash", {"c": "rm"}, "-", None), ("Read", {}, "success", None), ("Edit", {}, "fatal_error", "io"),
                 ("Raed", {}, "-", "unknown_tool"))
    holds = {(tool, outcome): not why_not(Check(name="c", call=CallCheck(tool=tool, outcome=outcome)), run, [])
             for tool in ("Bash", "Read", "Edit", "Raed", "Write") for outcome in ("made", "refused", "failed", "never")}
    assert {pair for pair, ok in holds.items() if ok} == {
        ("Bash", "refused"), ("Read", "made"), ("Edit", "failed"), ("Raed", "failed"), ("Write", "never")}


KEYS = ["type", "content", "id", "name", "input", "tool_use_id", "text", "is_error"]
WORDS = ["assistant", "user", "result", "tool_use", "tool_result"]
VALUES = st.recursive(st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4), lambda inner: (
    st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner | st.sampled_from(WORDS), max_size=5)),
    max_leaves=8)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(["type", "message", "result", "subtype", "structured_output", "num_turns"]),
                                VALUES | st.sampled_from(["assistant", "user", "result"]), max_size=5), max_size=4))
def test_no_message_of_a_run_breaks_measures_and_checks(messages: list[dict[str, Any]]) -> None:
    run = Played(messages=messages, trace=[], before={}, after={}, exit_code=None, stderr="")
    try:
        found = points(run, ["x"])
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{messages!r}") from error
    for check in (Check(name="c", call=CallCheck(tool="t", outcome="made")), Check(name="c", request=RequestCheck(contains="x")),
                  Check(name="c", measure=MeasureCheck(name="kernel.run.count", at_least=1)), Check(name="c", probe="x"),
                  Check(name="c", citations="exist")):
        assert isinstance(why_not(check, run, found), str)
    assert all(p.name.startswith(("kernel.", "claude_code.")) for p in found) and measures.summary(found) is not None
