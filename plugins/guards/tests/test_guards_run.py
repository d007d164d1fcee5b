"""Repeated calls and limits, through the real loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from kernel_guards import fingerprints
from kernel_guards.repeats import CONVERGE, SAME, STOPPED, WIDEN

from kernel import Tool, ToolContext, ToolResult, UsageError
from kernel.testing import FakeClock, Kit, Run, call, text

pytestmark = pytest.mark.anyio


class Look(Tool):
    """Answers what the test gives it, in turn, then the last for ever; counts how often it really ran."""

    name = "Look"
    description = "Looks."
    input_schema = {"type": "object", "properties": {"at": {"type": "string"}, "deep": {"type": "boolean", "default": False}}}
    permission = "free"

    def __init__(self, *answers: Any, name: str = "Look", reads: bool = True, polling: bool = False) -> None:
        self.name, self.polling, self.reads = name, polling, reads  # type: ignore[misc]
        self.answers, self.ran = list(answers) or ["the same"], 0

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return self.reads

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        self.ran += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, ToolResult) else ToolResult(content=answer, structured={"text": answer})


def kit(path: Path, turns: Any, *tools: Tool, settings: Any = None, **more: Any) -> Kit:
    return Kit(
        path, turns, tools=tools, installed=["guards"], settings={"kernel": {"guards": settings}} if settings else None, **more
    )


def results(run: Run, count: int) -> list[str]:
    return [str(run.result_of(f"call_{n}")["content"]) for n in range(1, count + 1)]


async def test_the_second_is_told_and_the_third_is_not_run(tmp_path: Path) -> None:
    look = Look()
    run = await kit(tmp_path, [*[call("Look", at="x")] * 3, text("done")], look).run("go")
    assert results(run, 3) == ["the same", f"the same\n{SAME}", STOPPED] and look.ran == 2
    assert run.result_of("call_3")["is_error"]


async def test_defaults_order_and_spelling_make_no_other_call(tmp_path: Path) -> None:
    look = Look()
    calls = [call("Look", at="x"), call("Look", deep=False, at="x"), call("Look", at="x", deep=False)]
    run = await kit(tmp_path, [*calls, text("done")], look).run("go")
    assert look.ran == 2 and results(run, 3)[2] == STOPPED


@pytest.mark.parametrize(
    ("answers", "ran"), [(["a", "b", "c", "d"], 4), (["a", "a", "b"], 2), (["took 12 ms", "took 31 ms", "took 4 ms"], 2)]
)
async def test_another_result_starts_anew_and_times_are_no_other_result(tmp_path: Path, answers: list[str], ran: int) -> None:
    look = Look(*answers)
    await kit(tmp_path, [*[call("Look", at="x")] * 4, text("done")], look).run("go")
    assert look.ran == ran


async def test_a_change_in_between_starts_anew(tmp_path: Path) -> None:
    look, write = Look(), Look(name="Write", reads=False)
    turns = [call("Look", at="x"), call("Look", at="x"), call("Write", at="y"), call("Look", at="x"), text("done")]
    run = await kit(tmp_path, turns, look, write).run("go")
    assert look.ran == 3 and results(run, 4)[3] == "the same"


async def test_polling_tools_and_a_switched_off_guard_are_left_alone(tmp_path: Path) -> None:
    look = Look(polling=True)
    await kit(tmp_path, [*[call("Look", at="x")] * 5, text("done")], look).run("go")
    assert look.ran == 5
    look = Look()
    run = await kit(tmp_path, [*[call("Look", at="x")] * 5, text("done")], look, settings={"repeats": False}).run("go")
    assert look.ran == 5 and SAME not in "".join(results(run, 5))


async def test_a_new_run_counts_anew(tmp_path: Path) -> None:
    look = Look()
    run = await kit(tmp_path, [*[call("Look", at="x")] * 2, text("one"), call("Look", at="x"), text("two")], look).run("go")
    await run.session.submit("again")
    assert look.ran == 3


async def test_when_the_budget_is_spent_the_model_is_asked_for_its_answer_without_tools(tmp_path: Path) -> None:
    look = Look()
    made = kit(tmp_path, [*[call("Look", at="x")] * 5, text("my answer"), text("next")], look, settings={"repeatBudget": 2})
    choices: list[Any] = []
    stream = made.model.stream

    def spy(request: Any) -> Any:
        choices.append(request.tool_choice)
        return stream(request)

    made.model.stream = spy
    run = await made.run("go")
    assert run.result.result == "my answer" and choices == [None] * 5 + [{"type": "none"}]
    assert CONVERGE in json.dumps(run.requests[-1]["messages"])
    await run.session.submit("more")
    assert choices[-1] is None


async def test_a_failure_that_may_pass_is_tried_again_where_nothing_is_changed(tmp_path: Path) -> None:
    slow = ToolResult(content="late", status="retryable_error", error_code="timeout", retryable=True)
    for reads, ran in ((True, 3), (False, 1)):
        look, clock = Look(slow, slow, "here", reads=reads), FakeClock()
        run = await kit(tmp_path, [call("Look", at="x"), text("done")], look, clock=clock).run("go")
        assert look.ran == ran and (results(run, 1) == ["here"]) is reads and clock.sleeps == ([0.5, 1.0] if reads else [])


async def test_an_empty_result_says_how_to_widen_it(tmp_path: Path) -> None:
    run = await kit(
        tmp_path, [call("Look", at="x"), text("done")], Look(ToolResult(content="No files found", status="empty", structured={}))
    ).run("go")
    assert results(run, 1) == [f"No files found\n{WIDEN}"] and not run.result_of("call_1").get("is_error")


# -- limits --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "subtype", "words", "requests"),
    [
        ({"maxTurns": 2}, "error_max_turns", "this run reached maxTurns (2)", 2),
        ({"maxTokens": 40}, "error_during_execution", "maxTokens (40)", 3),
        ({"calls": {"test-kit": 2}}, "error_during_execution", "plugin 'test-kit'", 3),
        ({"session": {"maxTurns": 3}}, "error_max_turns", "this session", 3),
    ],
)
async def test_a_limit_ends_the_run_and_is_named(tmp_path: Path, settings: Any, subtype: str, words: str, requests: int) -> None:
    run = await kit(tmp_path, [call("Look", at=str(n)) for n in range(9)], Look("a"), settings=settings).run("go")
    assert run.result.subtype == subtype and words in run.result.errors[0] and len(run.requests) == requests  # type: ignore[index]


async def test_time_is_counted_on_the_clock(tmp_path: Path) -> None:
    clock = FakeClock()

    class Slow(Look):
        async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
            await clock.sleep(40)
            return ToolResult(content=str(input))

    run = await kit(tmp_path, [call("Look", at=str(n)) for n in range(9)], Slow(), settings={"maxSeconds": 100}, clock=clock).run(
        "go"
    )
    assert run.result.terminal_reason == "budget_exhausted" and len(run.requests) == 3


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"maxTurns": 0}, "kernel.guards.maxTurns"),
        ({"maxUsd": "1"}, "kernel.guards.maxUsd"),
        ({"session": {"maxTokens": True}}, "guards.session.maxTokens"),
        ({"calls": {"x": -1}}, "guards.calls"),
        ([1], "kernel.guards"),
    ],
)
def test_a_limit_that_is_none_is_refused_before_anything_begins(tmp_path: Path, settings: Any, where: str) -> None:
    with pytest.raises(UsageError) as caught:
        kit(tmp_path, [], settings=settings).open()
    assert where in str(caught.value)


# -- fingerprints --------------------------------------------------------------------------------------------------------
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_keys_makes_no_difference(value: dict[str, Any], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert fingerprints.of_call("T", value) == fingerprints.of_call("T", dict(items))
    assert fingerprints.of_call("T", value) != fingerprints.of_call("U", value)


@given(JSON)
def test_any_result_has_a_fingerprint(value: Any) -> None:
    assert fingerprints.of_result(value) == fingerprints.of_result(value)
