"""Guards where it is hard: calls side by side, subagents, what comes first, settings that say nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest
from kernel_guards import fingerprints
from kernel_guards.repeats import SAME, STOPPED

from kernel import ToolContext, ToolResult, UsageError
from kernel.testing import Kit, call, text

from .test_guards_run import Look, kit, results

pytestmark = pytest.mark.anyio


class Side(Look):
    def is_concurrency_safe(self, input: dict[str, Any]) -> bool:
        return True

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        await anyio.lowlevel.checkpoint()
        return await super().call(input, context)


async def test_calls_side_by_side_are_run_and_counted(tmp_path: Path) -> None:
    look = Side()
    two = [call("Look", at="x"), call("Look", at="x")]
    run = await kit(tmp_path, [two, call("Look", at="x"), text("done")], look).run("go")
    assert look.ran == 2 and sorted(results(run, 3)) == sorted(["the same", f"the same\n{SAME}", STOPPED])


class Unsure(Look):
    def is_read_only(self, input: dict[str, Any]) -> bool:
        raise RuntimeError("cannot say")


async def test_a_tool_that_cannot_say_whether_it_reads_works_and_does_not(tmp_path: Path) -> None:
    look, other = Unsure(name="Odd"), Look()
    turns = [call("Look", at="x"), call("Look", at="x"), call("Odd"), call("Look", at="x"), text("done")]
    run = await kit(tmp_path, turns, look, other).run("go")
    assert other.ran == 3 and results(run, 3)[2] == "the same"


async def test_a_run_that_ends_before_its_answer_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    turns = [*[call("Look", at="x")] * 4, text("next")]
    made = kit(tmp_path, turns, Look(), settings={"repeatBudget": 1, "maxTurns": 4})
    choices: list[Any] = []
    stream = made.model.stream
    made.model.stream = lambda request: (choices.append(request.tool_choice), stream(request))[1]
    run = await made.run("go")
    assert run.result.subtype == "error_max_turns"
    plain = run.session.call_model
    assert (await run.session.submit("more")).result == "next"
    assert choices == [None] * 5 and run.session.call_model is plain


async def test_a_failed_try_is_asked_again_without_tools_as_well(tmp_path: Path) -> None:
    from kernel import ModelError
    from kernel.testing import FakeClock, Turn

    busy = Turn(fail=ModelError("busy", kind="overloaded_error", status=529))
    made = kit(
        tmp_path, [*[call("Look", at="x")] * 4, busy, text("answer")], Look(), settings={"repeatBudget": 1}, clock=FakeClock()
    )
    choices: list[Any] = []
    stream = made.model.stream
    made.model.stream = lambda request: (choices.append(request.tool_choice), stream(request))[1]
    assert (await made.run("go")).result.result == "answer"
    assert choices == [None] * 4 + [{"type": "none"}] * 2


async def test_ids_of_evidence_make_no_other_result(tmp_path: Path) -> None:
    note = tmp_path / "n.txt"
    note.write_text("x\n")
    made = Kit(
        tmp_path,
        [*[call("Bash", command="cat n.txt")] * 3, text("done")],
        installed=["guards", "evidence", "tools-shell"],
        settings={"kernel": {"evidence": {"tags": True}}},
    )
    run = await made.run("go")
    assert SAME in str(run.result_of("call_2")["content"]) and str(run.result_of("call_3")["content"]) == STOPPED


def test_a_path_in_the_workspace_says_something_wherever_it_lies() -> None:
    one, two = "found in /tmp/work/a.py", "found in /tmp/work/b.py"
    assert fingerprints.of_result(one) == fingerprints.of_result(two)
    assert fingerprints.of_result(one, "/tmp/work") != fingerprints.of_result(two, "/tmp/work")


def test_any_depth_has_a_fingerprint() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    assert fingerprints.of_call("T", {"a": deep})


async def test_a_call_over_the_limit_is_not_run_even_side_by_side(tmp_path: Path) -> None:
    look = Side()
    run = await kit(tmp_path, [[call("Look", at=str(n)) for n in range(5)]], look, settings={"calls": {"test-kit": 2}}).run("go")
    assert look.ran == 2 and run.result.terminal_reason == "budget_exhausted" and "more than 2 calls" in run.result.errors[0]  # type: ignore[index]


async def test_calls_of_a_subagent_count_for_the_run_and_a_new_run_counts_anew(tmp_path: Path) -> None:
    agent = call("Agent", description="d", prompt="Look.", subagent_type="general-purpose", run_in_background=False)
    look = Look()
    made = Kit(
        tmp_path,
        [agent, call("Look", at="1"), call("Look", at="2"), call("Look", at="3"), call("Look", at="4"), text("done")],
        tools=[look],
        installed=["guards", "subagents"],
        settings={"kernel": {"guards": {"calls": {"test-kit": 1}}}},
    )
    run = await made.run("go")
    assert look.ran == 1 and run.result.terminal_reason == "budget_exhausted"
    made.model.turns[:] = [call("Look", at="9"), text("fine")]
    assert (await run.session.submit("again")).result == "fine" and look.ran == 2


@pytest.mark.parametrize(
    ("settings", "requests"), [({"agent": {"maxTurns": 2}}, 3), ({"maxTokens": 40}, 3), ({"session": {"maxTokens": 40}}, 3)]
)
async def test_a_subagent_ends_where_its_limit_or_that_of_the_conversation_is_reached(
    tmp_path: Path, settings: Any, requests: int
) -> None:
    agent = call("Agent", description="d", prompt="Look.", subagent_type="general-purpose", run_in_background=False)
    made = Kit(
        tmp_path,
        [agent, *[call("Look", at=str(n)) for n in range(9)]],
        tools=[Look("a")],
        installed=["guards", "subagents"],
        settings={"kernel": {"guards": settings}},
    )
    run = await made.run("go")
    inner = [r for r in run.requests if "Look." in json.dumps(r["messages"][0])]
    assert len(inner) == requests - 1
    assert (run.result.terminal_reason == "budget_exhausted") is ("agent" not in settings)


async def test_an_answer_that_was_handed_in_with_the_last_turn_counts(tmp_path: Path) -> None:
    schema = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}})
    made = Kit(
        tmp_path,
        [call("StructuredOutput", n="x"), call("StructuredOutput", n=1)],
        installed=["guards", "structured-output"],
        settings={"kernel": {"guards": {"maxTurns": 2}}},
        extra={"json_schema": schema},
    )
    run = await made.run("go")
    assert run.result.structured_output == {"n": 1}
    made.model.turns[:] = [call("StructuredOutput", n="x")] * 3
    assert (await run.session.submit("again")).subtype == "error_max_turns"


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"maxTurn": 3}, "kernel.guards.maxTurn"),
        ({"agent": 5}, "kernel.guards.agent"),
        ({"session": {"turns": 5}}, "guards.session.turns"),
        ({"calls": None}, "guards.calls"),
        ({"repeats": "no"}, "guards.repeats"),
        ({"repeatBudget": -1}, "guards.repeatBudget"),
        ({"maxUsd": float("nan")}, "guards.maxUsd"),
    ],
)
def test_a_guard_that_would_not_work_is_refused_by_name(tmp_path: Path, settings: Any, where: str) -> None:
    with pytest.raises(UsageError) as caught:
        kit(tmp_path, [], settings=settings).open()
    assert where in str(caught.value)


def test_a_plugin_that_is_not_there_is_named(tmp_path: Path) -> None:
    made = kit(tmp_path, [], settings={"calls": {"tols-web": 1}})
    made.open()
    assert any("there is no plugin 'tols-web'" in a for a in made.harness.announced)


async def test_what_a_compaction_took_away_may_be_asked_for_again(tmp_path: Path) -> None:
    look = Look()
    made = kit(tmp_path, [call("Look", at="x"), call("Look", at="x"), call("Look", at="x"), text("done")], look)
    session = made.open()

    def forget(body: Any) -> Any:
        session.rewrite([("user", [{"type": "text", "text": "a summary"}])])
        return call("Look", at="x")

    made.model.turns[2] = forget
    await session.submit("go")
    assert look.ran == 3 and session.history.messages[-2][1][0]["content"] == "the same"
