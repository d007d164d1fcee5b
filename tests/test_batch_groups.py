"""Several calls in one message: what runs side by side, what holds when one of them goes wrong (loop contract, section 7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from kernel import ToolContext, ToolError, ToolResult
from kernel.events import PostToolBatchResult, PostToolUseFailureResult, PostToolUseResult, PreToolUseResult
from kernel.testing import Kit, Run, call, module, text
from kernel.tools import State

pytestmark = pytest.mark.anyio


def results(run: Run, request: int = 1) -> list[dict[str, Any]]:
    """The result blocks of the first batch, as the model saw them."""
    return [b for b in run.requests[request]["messages"][2]["content"] if b["type"] == "tool_result"]


class Log:
    """Who began and who ended, in order; a call gives way a few times while it runs."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, int]] = []
        self.running = self.most = 0

    async def run(self, input: dict[str, Any], context: ToolContext) -> str:
        self.entries.append(("begin", input["n"]))
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        self.running -= 1
        self.entries.append(("end", input["n"]))
        return f"out {input['n']}"

    def overlapped(self, one: int, other: int) -> bool:
        at = {entry: place for place, entry in enumerate(self.entries)}
        return at["begin", one] < at["end", other] and at["begin", other] < at["end", one]


# -- groups -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("pattern", "groups"), [
    ("r", ["r"]), ("rrr", ["rrr"]), ("w", ["w"]), ("ww", ["w", "w"]), ("rwr", ["r", "w", "r"]), ("rrwrr", ["rr", "w", "rr"]),
    ("wrrw", ["w", "rr", "w"]), ("rrwwr", ["rr", "w", "w", "r"])])
async def test_neighbouring_safe_calls_run_together_and_every_other_call_alone(
        pattern: str, groups: list[str], tmp_path: Path, probe: Any) -> None:
    log = Log()
    tool = probe(run=log.run, safe=lambda input: pattern[input["n"]] == "r")
    run = await Kit(tmp_path, [[call("Probe", n=n) for n in range(len(pattern))], text("done")], tools=[tool]).run("go")
    group_of = [g for g, group in enumerate(groups) for _ in group]
    for one in range(len(pattern)):
        for other in range(one):
            assert log.overlapped(other, one) == (group_of[one] == group_of[other])
            if group_of[one] != group_of[other]:
                assert log.entries.index(("end", other)) < log.entries.index(("begin", one))
    assert [r["content"] for r in results(run)] == [f"out {n}" for n in range(len(pattern))]


async def test_results_stand_in_call_order_whatever_order_they_came_in(tmp_path: Path, probe: Any) -> None:
    done = [anyio.Event() for _ in range(4)]

    async def backwards(input: dict[str, Any], context: Any) -> str:
        n = input["n"]
        if n < 3:
            await done[n + 1].wait()
        done[n].set()
        return str(n)

    kit = Kit(tmp_path, [[call("Probe", n=n) for n in range(4)], text("done")], tools=[probe(run=backwards, safe=True)])
    with anyio.fail_after(5):
        run = await kit.run("go")
    assert [(r["tool_use_id"], r["content"]) for r in results(run)] == [(f"call_{n + 1}", str(n)) for n in range(4)]


@pytest.mark.parametrize(("given", "most"), [(None, 10), ("3", 3), ("1", 1), ("0", 10), ("many", 10), ("20", 13)])
async def test_no_more_than_the_allowed_number_runs_at_once(
        given: str | None, most: int, tmp_path: Path, probe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if given:
        monkeypatch.setenv("CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY", given)
    log = Log()
    calls = [call("Probe", n=n) for n in range(13)]
    run = await Kit(tmp_path, [calls, text("done")], tools=[probe(run=log.run, safe=True)]).run("go")
    assert log.most == most
    assert len(results(run)) == 13


async def test_a_class_that_cannot_be_told_counts_as_unsafe(tmp_path: Path, probe: Any) -> None:
    def unsure(input: Any) -> bool:
        raise KeyError("path")

    log = Log()
    await Kit(tmp_path, [[call("Probe", n=n) for n in range(2)], text("done")], tools=[probe(run=log.run, safe=unsure)]).run("go")
    assert log.most == 1


async def test_two_equal_calls_are_both_run(tmp_path: Path, probe: Any) -> None:
    await Kit(tmp_path, [[call("Probe", n=1), call("Probe", n=1)], text("done")], tools=[tool := probe(safe=True)]).run("go")
    assert tool.ran == [{"n": 1}, {"n": 1}]


# -- neighbours -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("safe", [True, False])
async def test_a_failing_neighbour_disturbs_nobody(safe: bool, tmp_path: Path, probe: Any) -> None:
    async def some_fail(input: dict[str, Any], context: Any) -> str:
        await anyio.lowlevel.checkpoint()
        if input["n"] == 1:
            raise ToolError("not_found", "gone")
        if input["n"] == 2:
            raise ZeroDivisionError("oops")
        await anyio.lowlevel.checkpoint()
        return "fine"

    calls = [call("Probe", n=n) for n in range(4)]
    run = await Kit(tmp_path, [calls, text("done")], tools=[probe(run=some_fail, safe=safe)]).run("go")
    assert [(r["content"], r.get("is_error", False)) for r in results(run)] == [
        ("fine", False), ("gone", True), ("Probe failed: ZeroDivisionError: oops", True), ("fine", False)]


@pytest.mark.parametrize("safe", [True, False])
async def test_a_denied_or_malformed_neighbour_disturbs_nobody(safe: bool, tmp_path: Path, probe: Any) -> None:
    bad_json = {**call("Probe"), "raw_input": '{"n": 2'}
    calls = [call("Probe", n=1), call("Prbe"), bad_json, call("Probe", n="x"), call("Probe", n=3), call("Probe", n=4)]
    kit = Kit(tmp_path, [calls, text("done")], tools=[tool := probe(safe=safe)],
              policy=lambda name, input: "deny" if input["n"] == 3 else "allow")
    run = await kit.run("go")
    assert sorted(i["n"] for i in tool.ran) == [1, 4]
    assert [r.get("is_error", False) for r in results(run)] == [False, True, True, True, True, False]
    assert [r["tool_use_id"] for r in results(run)] == [f"call_{n}" for n in range(1, 7)]


# -- state that calls change ----------------------------------------------------------------------------------------------
def moving(log: list[str]) -> Any:
    """A tool that notes where it is and then moves on."""
    def run(input: dict[str, Any], context: ToolContext) -> ToolResult:
        log.append(context.cwd)
        return ToolResult(content="ok", context_modifier=lambda state: replace(state, cwd=f"{state.cwd}/{input['n']}"))
    return run


@pytest.mark.parametrize(("safe", "places"), [(False, ["", "/0", "/0/1"]), (True, ["", "", ""])])
async def test_a_lone_call_changes_the_state_at_once_and_a_group_behind_it_in_call_order(
        safe: bool, places: list[str], tmp_path: Path, probe: Any) -> None:
    log: list[str] = []
    kit = Kit(tmp_path, [[call("Probe", n=n) for n in range(3)], text("done")], tools=[probe(run=moving(log), safe=safe)])
    session = kit.open()
    await kit.run("go", session)
    assert log == [f"{tmp_path}{place}" for place in places]
    assert session.state.cwd == f"{tmp_path}/0/1/2"


async def test_a_call_is_prepared_when_the_calls_before_it_have_done_their_work(tmp_path: Path, probe: Any) -> None:
    log: list[str] = []
    later = probe("Later", prepare_input=lambda input, context: {**input, "text": context.cwd})
    kit = Kit(tmp_path, [[call("Probe", n=1), call("Later")], text("done")], tools=[probe(run=moving(log)), later])
    await kit.run("go")
    assert later.ran == [{"text": f"{tmp_path}/1"}]


@pytest.mark.parametrize("modifier", [lambda state: None, lambda state: state.nothing, lambda state: {"cwd": "/"}])
async def test_a_modifier_that_breaks_is_told_and_changes_nothing(modifier: Any, tmp_path: Path, probe: Any) -> None:
    tool = probe(run=lambda *_: ToolResult(content="ok", context_modifier=modifier))
    kit = Kit(tmp_path, [call("Probe"), text("done")], tools=[tool])
    session = kit.open()
    before = session.state
    run = await kit.run("go", session)
    assert isinstance(session.state, State) and session.state == before
    assert any("context modifier failed" in n for n in run.notices())
    assert run.result.terminal_reason == "completed"


# -- a turn that is ended inside a batch -----------------------------------------------------------------------------------
def stops(name: str) -> Any:
    """Hooks that end the turn at that event."""
    answers = {"pre_tool_use": PreToolUseResult(continue_=False, stop_reason="enough"),
               "post_tool_use": PostToolUseResult(continue_=False, stop_reason="enough"),
               "post_tool_use_failure": PostToolUseFailureResult(continue_=False, stop_reason="enough"),
               "post_tool_batch": PostToolBatchResult(continue_=False, stop_reason="enough")}
    return module(**{name: lambda event: answers[name]})


@pytest.mark.parametrize(("event", "ran"), [
    ("pre_tool_use", 0), ("post_tool_use", 1), ("post_tool_use_failure", 1), ("post_tool_batch", 2)])
async def test_continue_false_ends_the_turn_with_a_result_for_every_call(
        event: str, ran: int, tmp_path: Path, probe: Any) -> None:
    """Also for those that were malformed from the start and stand behind the one that ended it."""
    calls = [call("Probe", n=1), call("Probe", n=2), call("Nothing"), {**call("Probe"), "raw_input": "{"}, call("Probe", n="x")]
    tool = probe(run=(lambda *_: 1 / 0) if event == "post_tool_use_failure" else None)
    kit = Kit(tmp_path, [calls, text("never"), text("second prompt")], tools=[tool], hooks={"h": stops(event)})
    session = kit.open()
    run = await kit.run("go", session)
    assert len(tool.ran) == ran
    assert (run.result.subtype, run.result.terminal_reason, run.result.result) == ("success", "hook_stopped", "enough")
    assert len(run.requests) == 1
    assert session.history.open_calls == []
    await session.submit("again")  # the history can be used
    assert [r["tool_use_id"] for r in results(run)] == [f"call_{n}" for n in range(1, 6)]
    contents = [r["content"] for r in results(run)]
    assert "unknown_tool" in contents[2] and "invalid_arguments" in contents[3] and "invalid_arguments" in contents[4]
    assert all("enough" in c for c in contents[ran:2]) or ran == 2


async def test_calls_that_already_run_beside_the_one_that_ends_the_turn_are_finished(tmp_path: Path, probe: Any) -> None:
    log = Log()
    hooks = module(post_tool_use=lambda event: PostToolUseResult(continue_=False) if event.tool_input["n"] == 0 else None)
    kit = Kit(tmp_path, [[*(call("Probe", n=n) for n in range(3)), call("Late", n=3)], text("never")],
              tools=[probe(run=log.run, safe=True), late := probe("Late")], hooks={"h": hooks})
    session = kit.open()
    run = await kit.run("go", session)
    assert {n for what, n in log.entries if what == "end"} == {0, 1, 2} and late.ran == []
    assert run.result.terminal_reason == "hook_stopped" and session.history.open_calls == []


async def test_a_block_of_the_batch_stops_the_loop_and_stays_in_the_conversation(tmp_path: Path, probe: Any) -> None:
    hooks = module(post_tool_batch=lambda event: PostToolBatchResult(decision="block", reason="tests are red"))
    kit = Kit(tmp_path, [call("Probe"), text("second prompt")], tools=[probe()], hooks={"h": hooks})
    session = kit.open()
    run = await kit.run("go", session)
    assert (len(run.requests), run.result.terminal_reason) == (1, "hook_stopped")
    assert "tests are red" in run.notices()
    await session.submit("again")
    assert "tests are red" in json.dumps(run.requests[1]["messages"])


# -- defer --------------------------------------------------------------------------------------------------------------------
def defers(event: Any) -> PreToolUseResult:
    return PreToolUseResult(permission_decision="defer", permission_decision_reason="later", updated_input={"n": 9},
                            additional_context="unused")


async def test_a_deferred_call_ends_the_run_and_stays_open(tmp_path: Path, probe: Any) -> None:
    kit = Kit(tmp_path, [call("Probe", n=1), text("never")], tools=[tool := probe()], hooks={"h": module(pre_tool_use=defers)})
    session = kit.open()
    run = await kit.run("go", session)
    assert (tool.ran, kit.policy.calls, len(run.requests)) == ([], [], 1)
    result = run.result
    assert (result.subtype, result.is_error, result.terminal_reason, result.stop_reason) == (
        "success", False, "tool_deferred", "tool_deferred")
    assert result.deferred_tool_use == {"id": "call_1", "name": "Probe", "input": {"n": 1}}
    assert session.history.open_calls == ["call_1"]
    assert "unused" not in json.dumps(session.history.wire())


async def test_a_prompt_behind_a_deferred_call_finds_a_legal_history(tmp_path: Path, probe: Any) -> None:
    kit = Kit(tmp_path, [call("Probe", n=1), text("done")], tools=[probe()], hooks={"h": module(pre_tool_use=defers)})
    session = kit.open()
    await kit.run("go", session)
    run = await kit.run("and now?", session)
    assert run.result.terminal_reason == "completed"
    assert [r["tool_use_id"] for r in results(run)] == ["call_1"]


@pytest.mark.parametrize(("calls", "options"), [(2, {}), (1, {"print_mode": False})])
async def test_defer_is_ignored_with_a_warning_where_it_cannot_work(
        calls: int, options: dict[str, Any], tmp_path: Path, probe: Any) -> None:
    kit = Kit(tmp_path, [[call("Probe", n=n) for n in range(calls)], text("done")], tools=[tool := probe()],
              hooks={"h": module(pre_tool_use=lambda event: PreToolUseResult(permission_decision="defer"))}, **options)
    run = await kit.run("go")
    assert len(tool.ran) == calls
    assert any("defer works for a single call in print mode only" in n for n in run.notices())
