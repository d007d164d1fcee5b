"""One agent from its call to its report: context, foreground, background, limits, failures, what clients are told."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from kernel import ModelError, Prices
from kernel.clear import clear
from kernel.testing import call, text
from kernel.testing.scripted import Turn

from .agent_world import SCOUT, Gate, World, agent

pytestmark = pytest.mark.anyio


@pytest.fixture
def scout(world: World) -> World:
    world.write(".claude/agents/scout.md", SCOUT)
    return world


# -- the foreground ----------------------------------------------------------------------------------------------------
async def test_it_has_a_context_of_its_own_and_the_parent_gets_the_report_alone(scout: World) -> None:
    path = scout.write("tree.txt", "an oak with a hollow\n")
    await scout.run([agent("Look for trees."), text("done")], {
        "Look for trees.": [call("Read", "toolu_s", file_path=str(path)), text("One tree.")]}, prompt="The main secret.")
    inside = scout.told("Look for trees.")
    assert "You are the scout." in inside and "The main secret." not in inside and "an oak with a hollow" in inside
    assert "One tree." in scout.result("toolu_1") and "agentId: " in scout.result("toolu_1")
    assert "an oak with a hollow" not in scout.told() and "toolu_s" not in scout.told()


async def test_the_structured_result_counts_the_last_request_and_all_tools(scout: World) -> None:
    path = scout.write("a.txt", "x\n")
    read = call("Read", file_path=str(path))
    seen: list[Any] = []
    from kernel.testing import module

    await scout.run([agent("Count."), text("done")], {"Count.": [
        Turn(blocks=[read], usage={"input_tokens": 900, "output_tokens": 50}),
        Turn(blocks=[text("one")], usage={"input_tokens": 30, "output_tokens": 12})]},
        hooks={"h": module(post_tool_use=lambda event: seen.append(event) if event.tool_name == "Agent" else None)})
    (event,) = seen
    got = event.tool_response
    assert (got["status"], got["agentType"], got["totalToolUseCount"], got["totalTokens"]) == ("completed", "scout", 1, 42)
    assert got["usage"]["input_tokens"] == 30 and got["prompt"] == "Count."
    assert got["content"] == [{"type": "text", "text": "one"}]
    assert got["resolvedModel"] == scout.session.model_info.id


async def test_several_in_one_answer_run_side_by_side_and_answer_in_call_order(scout: World) -> None:
    gate = Gate()

    def second(body: Any) -> Any:
        gate.open.set()
        return text("Sand.")

    await scout.run([[agent("Look north.", "n"), agent("Look south.", "s")], text("done")], {
        "Look north.": [call("Gate"), text("Snow.")], "Look south.": [second]}, tools=[gate])
    assert "Snow." in scout.result("n") and "Sand." in scout.result("s"), "the first waited for the second"
    ids = [b["tool_use_id"] for b in scout.model.by_route[""][-1]["messages"][-1]["content"] if b["type"] == "tool_result"]
    assert ids == ["n", "s"]


async def test_an_unknown_type_is_an_error_that_lists_the_types(scout: World) -> None:
    await scout.run([[agent("Look.", "a", type="nobody"), agent("Look.", "b", type=None)], text("done")], {
        "Look.": [text("general")]})
    assert "scout" in scout.result("a") and "general-purpose" in scout.result("a")
    assert "general" in scout.result("b"), "without a type it is general-purpose"


async def test_case_and_separators_of_a_type_do_not_matter(world: World) -> None:
    world.agent("code-scout")
    await world.run([agent("x y z", type="Code_Scout"), text("done")], {"x y z": [text("found")]})
    assert "found" in world.result("toolu_1")


async def test_an_empty_report_says_so(scout: World) -> None:
    await scout.run([agent("Look."), text("done")], {"Look.": [text(" "), text(" ")]})
    assert "ended without a text" in scout.result("toolu_1")


async def test_a_long_report_is_cut_and_kept_in_a_file(scout: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASK_MAX_OUTPUT_LENGTH", "100")
    await scout.run([agent("Look."), text("done")], {"Look.": [text("a" * 100 + "b" * 50)]})
    result = scout.result("toolu_1")
    assert "150 characters in all" in result and "bbb" not in result
    path = result.split("the whole report is in ")[1].split(")")[0]
    assert Path(path).read_text().endswith("b" * 50)


async def test_turns_are_limited_and_the_last_text_comes_with_a_note(world: World) -> None:
    world.agent("scout", maxTurns=1)
    path = world.write("a.txt", "x\n")
    reads = [[text("So far: nothing."), call("Read", file_path=str(path))], text("never")]
    await world.run([agent("Look."), text("done")], {"Look.": reads})
    assert "So far: nothing." in world.result("toolu_1") and "limit of turns" in world.result("toolu_1")
    assert "never" not in world.result("toolu_1")


# -- failures ----------------------------------------------------------------------------------------------------------
FAIL = Turn(fail=ModelError("the model is gone", status=400, kind="invalid_request_error"))


async def test_an_api_error_without_text_is_an_error(scout: World) -> None:
    await scout.run([agent("Look."), text("done")], {"Look.": [call("Glob", pattern="*"), FAIL]})
    assert "Agent terminated early due to an API error: API Error 400: the model is gone" in scout.result("toolu_1")


async def test_an_api_error_behind_text_gives_the_text_and_a_note(scout: World) -> None:
    await scout.run([agent("Look."), text("done")], {"Look.": [[text("Half a finding."), call("Glob", pattern="*")], FAIL]})
    assert "Half a finding." in scout.result("toolu_1") and "cut off" in scout.result("toolu_1")


async def test_in_the_background_an_api_error_is_a_failure_with_the_last_output(scout: World) -> None:
    await scout.run([agent("Look.", background=True), text("waiting"), text("I see")], {
        "Look.": [[text("Half a finding."), call("Glob", pattern="*")], FAIL]})
    await scout.settle()
    assert "<status>failed</status>" in scout.told() and "Half a finding." in scout.told() and "the model is gone" in scout.told()


# -- the background ----------------------------------------------------------------------------------------------------
async def test_silence_means_the_background_and_the_report_starts_a_run(scout: World) -> None:
    run = await scout.run([agent("Look.", background=None), text("it runs"), text("thanks")], {"Look.": [text("One tree.")]})
    assert "One tree." not in scout.told() and "works in the background" in scout.result("toolu_1") and run.text == "it runs"
    (result,) = await scout.settle()
    assert result.result == "thanks" and result.origin == {"kind": "task-notification"}
    last = scout.model.by_route[""][-1]["messages"][-1]["content"][-1]["text"]
    assert "One tree." in last and "not from the user" in last and "<status>completed</status>" in last


async def test_a_report_that_comes_while_the_parent_works_goes_behind_the_batchs_results(scout: World) -> None:
    gate = Gate()

    def report(body: Any) -> Any:
        return text("One tree.")

    async def go_on() -> None:
        await scout.until(lambda: bool(gate.waiting))
        await scout.until(lambda: len(scout.session.inbox) > 0)
        gate.open.set()

    scout.open([agent("Look.", background=True), call("Gate", "gate"), text("seen")], {"Look.": [report]}, tools=[gate])
    async with anyio.create_task_group() as group:
        group.start_soon(go_on)
        run = await scout.go("Start.")
    content = scout.model.by_route[""][-1]["messages"][-1]["content"]
    assert content[0]["type"] == "tool_result" and "One tree." in content[1]["text"] and run.text == "seen"
    assert await scout.settle() == []


@pytest.mark.parametrize(("variable", "definition", "asked", "waits"), [
    ("", False, None, False), ("", False, False, True), ("", False, True, False), ("", True, False, False),
    ("1", True, True, True), ("1", False, None, True)])
async def test_who_decides_about_the_background(variable: str, definition: bool, asked: bool | None, waits: bool, world: World,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", variable)
    world.agent("scout", background=definition)
    await world.run([agent("Look.", background=asked), text("a"), text("b")], {"Look.": [text("One tree.")]})
    assert ("One tree." in world.result("toolu_1")) is waits


async def test_task_stop_ends_it_by_id_and_by_name(scout: World) -> None:
    gate = Gate()
    scout.open([agent("Look.", background=True, name="eyes"), lambda body: call("TaskStop", "stop", task_id="eyes"), text("ok")],
               {"Look.": [call("Gate"), text("never")]}, tools=[gate])
    async with anyio.create_task_group() as group:
        group.start_soon(scout.go, "Start.")
    await scout.settle()
    assert "Stopped the task" in scout.result("stop") and "<status>stopped</status>" in json.dumps(scout.model.requests[-1])
    assert scout.said("task_notification")[-1]["status"] == "stopped"
    assert scout.said("background_tasks_changed")[-1]["tasks"] == [] and scout.session.background_tasks == {}


async def test_the_end_of_the_session_stops_what_runs_and_tells_clients(scout: World) -> None:
    gate = Gate()
    await scout.run([agent("Look.", background=True), text("waiting")], {"Look.": [call("Gate"), text("never")]}, tools=[gate])
    await scout.until(lambda: bool(gate.waiting))
    await scout.session.close()
    assert gate.cancelled == 1 and scout.said("task_updated")[-1]["patch"]["status"] == "killed"
    assert [m["task_id"] for m in scout.said("task_started")] == [m["task_id"] for m in scout.said("task_notification")]


async def test_a_hung_agent_is_ended_and_its_parent_gets_what_there_is(scout: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS", "300")
    gate = Gate()
    await scout.run([agent("Look.", background=True), text("waiting"), text("oh")], {
        "Look.": [[text("Something."), call("Gate")], text("never")]}, tools=[gate])
    await scout.settle()
    assert "<status>failed</status>" in scout.told() and "Something." in scout.told() and "no sign of life" in scout.told()


async def test_the_report_of_an_agents_own_agent_goes_to_it_and_not_to_the_conversation(scout: World) -> None:
    turns = [agent("Outer."), text("done")]
    gate = Gate()

    def inner(body: Any) -> Any:
        gate.open.set()
        return text("deep finding")

    await scout.run(turns, {"Inner.": [inner], "Outer.": [
        agent("Inner.", "i", background=True), call("Gate"), call("Glob", pattern="*"), text("outer report")]}, tools=[gate])
    await scout.settle()
    assert "deep finding" in scout.told("Outer.") and "deep finding" not in json.dumps(scout.model.by_route[""])


async def test_a_report_whose_reader_is_gone_goes_to_the_conversation(scout: World) -> None:
    gate = Gate()
    await scout.run([agent("Outer."), text("done"), text("I see")], {
        "Inner.": [call("Gate"), text("deep finding")], "Outer.": [agent("Inner.", "i", background=True), text("outer report")]},
        tools=[gate])
    gate.open.set()
    await scout.settle()
    assert "deep finding" in scout.told()


async def test_task_output_shows_what_an_agent_has_said_so_far(scout: World) -> None:
    gate = Gate()

    def ask(body: Any) -> Any:
        return call("TaskOutput", "o", task_id=str(scout.said("task_started")[0]["task_id"]), timeout=0)

    turns = [agent("Look.", background=True), ask, text("ok"), text("ok")]

    class Wait(Gate):
        async def call(self, input: Any, context: Any) -> Any:
            await scout.until(lambda: bool(gate.waiting))
            return await super().call(input, context)

    wait = Wait()
    wait.name = "Other"  # type: ignore[misc]
    wait.open.set()
    turns.insert(1, call("Other"))
    await scout.run(turns, {"Look.": [[text("So far so good."), call("Gate")], text("end")]}, tools=[gate, wait])
    assert "So far so good." in scout.result("o") and "running" in scout.result("o")
    gate.open.set()
    await scout.settle()


async def test_without_a_transcript_the_report_lies_in_a_file(scout: World) -> None:
    await scout.run([agent("Look.", background=True), text("a"), text("b")], {"Look.": [text("One tree.")]})
    await scout.settle()
    path = Path(scout.said("task_notification")[0]["output_file"])
    assert str(path) in scout.result("toolu_1") and path.read_text() == "One tree."


# -- clients -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("background", [False, True])
async def test_clients_see_start_progress_and_end_and_every_message_names_the_call(background: bool, scout: World) -> None:
    await scout.run([agent("Look.", background=background), text("a"), text("b")], {
        "Look.": [call("Glob", "toolu_s", pattern="*.none"), text("One tree.")]})
    await scout.settle()
    (started,), (ended,), (updated,) = (scout.said(s) for s in ("task_started", "task_notification", "task_updated"))
    assert started["task_type"] == "local_agent" and started["tool_use_id"] == "toolu_1" and started["spawn_depth"] == 1
    assert started["is_backgrounded"] is background and started["subagent_type"] == "scout" and started["prompt"] == "Look."
    assert (ended["status"], updated["patch"]["status"], ended["task_id"]) == ("completed", "completed", started["task_id"])
    assert ended["usage"]["tool_uses"] == 1 and scout.said("task_progress")[0]["last_tool_name"] == "Glob"
    assert bool(scout.said("background_tasks_changed")) is background
    inside = [m for m in scout.messages() if m.parent_tool_use_id == "toolu_1"]
    assert [m.message["content"][0]["type"] for m in inside] == ["tool_use", "tool_result"]
    others = [m for m in scout.messages() if m.parent_tool_use_id is None]
    assert "toolu_s" not in json.dumps([m.message for m in others], default=str)


async def test_the_init_message_lists_agents_and_the_old_name_of_the_tool(scout: World) -> None:
    await scout.run([text("hi")])
    (init,) = scout.said("init")
    assert {"scout", "general-purpose", "Explore", "Plan", "claude"} <= set(init["agents"])
    assert {"Agent", "Task"} <= set(init["tools"])
    assert "- scout: Finds things." in scout.told()


async def test_forwarded_text_carries_the_id_of_its_own_call_at_every_depth(scout: World) -> None:
    await scout.run([agent("Outer."), text("done")], {
        "Outer.": [agent("Inner.", "inner"), text("outer says")], "Inner.": [text("inner says")]},
        extra={"forward_subagent_text": True})
    said = {m.message["content"][0]["text"]: m.parent_tool_use_id for m in scout.messages()
            if m.message["content"][0].get("type") == "text" and m.message["role"] == "assistant"}
    assert said == {"inner says": "inner", "outer says": "toolu_1", "done": None}


async def test_an_agent_that_no_call_started_is_not_taken_for_the_conversation(scout: World) -> None:
    scout.open([text("hi")], {"Look.": [call("Glob", pattern="*.none"), text("x")]})
    await scout.go("Start.")
    assert scout.session.agents is not None
    await scout.session.agents.run(scout.session, prompt="Look.", agent_type="scout", background=False)
    inside = [m for m in scout.messages() if "tool" in str(m.message["content"][0].get("type"))]
    assert {m.parent_tool_use_id for m in inside} == {scout.said("task_started")[0]["task_id"]}


# -- limits ------------------------------------------------------------------------------------------------------------
async def test_depth_three_the_last_has_no_agent_tool(scout: World) -> None:
    await scout.run([agent("level one"), text("done")], {
        "level one": [agent("level two", "t2"), text("1")], "level two": [agent("level three", "t3"), text("2")],
        "level three": [agent("level four", "t4"), text("3")]})
    assert "Agent" in scout.tools("level two") and "Agent" not in scout.tools("level three")
    assert "level four" not in scout.model.by_route and "unknown_tool" in scout.told("level three")
    assert [m["spawn_depth"] for m in scout.said("task_started")] == [1, 2, 3]
    parents = {m.parent_tool_use_id for m in scout.messages()}
    assert parents == {None, "toolu_1", "t2", "t3"}


@pytest.mark.parametrize(("given", "layers"), [("1", 1), ("2", 2), ("", 3), ("x", 3)])
async def test_the_depth_can_be_set(given: str, layers: int, scout: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH", given)
    names = ["one.", "two.", "three.", "four."]
    routes = {n: [agent(m, f"t-{m}"), text("r")] for n, m in itertools.pairwise(names)} | {"four.": [text("r")]}
    await scout.run([agent("one."), text("done")], routes)
    assert len(scout.said("task_started")) == layers


async def test_the_agent_beyond_the_limit_is_refused_and_told_not_to_retry(scout: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS", "2")
    gate = Gate()
    calls = [agent("Look.", f"t{n}", background=True) for n in range(3)]
    await scout.run([calls, text("ok"), text("ok"), text("ok")], {
        "Look.": [call("Gate"), call("Gate"), text("a"), text("b")]}, tools=[gate])
    assert "Concurrent subagent limit reached" in scout.result("t2") and "not retry" in scout.result("t2")
    assert "background" in scout.result("t0") and "background" in scout.result("t1")
    gate.open.set()
    await scout.settle()


async def test_money_is_one_purse(scout: World) -> None:
    dear = Prices(1e6, 1e6, 0, 0)  # 15 dollars for each answer of the script
    run = await scout.run([agent("Look."), agent("Again.", "t2"), text("done")], {
        "Look.": [call("Glob", pattern="*"), text("x")]}, prices=dear, max_budget_usd=40.0)
    assert run.result.subtype == "error_max_budget_usd" and run.result.total_cost_usd == 45.0
    assert "Again." not in scout.model.by_route
    assert run.result.usage.input_tokens == 10, "usage is the conversation's own"
    assert next(iter(run.result.model_usage.values()))["inputTokens"] == 30


async def test_no_agent_starts_where_the_money_is_spent(scout: World) -> None:
    scout.open([[agent("Look."), agent("Other.", "t2")], text("done")], {"Look.": [text("x")]}, max_budget_usd=1.0)

    def spend(body: Any) -> Any:
        scout.session.spending.usd = 2.0
        return agent("Look.")

    scout.model.turns = [spend, text("done")]
    scout.session.spending.usd = 0.0
    await scout.go("Start.")
    assert "Look." not in scout.model.by_route
    assert any("Budget limit reached" in str(m.message) for m in scout.messages())


async def test_a_cleared_conversation_takes_its_agents_along(scout: World) -> None:
    gate = Gate()
    both = [agent("Look.", "a", background=True, name="eyes"), agent("Listen.", "b", background=True)]
    await scout.run([both, text("waiting")], {"Look.": [call("Gate")], "Listen.": [text("A finding.")]}, tools=[gate])
    await scout.until(lambda: bool(gate.waiting and len(scout.session.inbox)))
    await clear(scout.session)
    assert gate.cancelled == 1 and not len(scout.session.inbox) and not scout.session.inbox.awaited
    scout.model.turns = [call("SendMessage", "s", to="eyes", message="x"), text("ok")]
    await scout.go("New.")
    assert "A finding." not in scout.told() and "No agent has the id or name" in scout.result("s")
    assert "- scout: Finds things." in scout.told(), "the new conversation is told of the agents"


# -- interrupts --------------------------------------------------------------------------------------------------------
async def test_an_interrupt_of_the_parent_ends_foreground_agents_and_keeps_the_pairs(scout: World) -> None:
    gate = Gate()
    scout.open([[agent("Look.", "a"), agent("Nest.", "b")], text("again")], {
        "Look.": [call("Gate")], "Nest.": [agent("Deep.", "c")], "Deep.": [call("Gate")]}, tools=[gate])
    async with anyio.create_task_group() as group:
        group.start_soon(scout.go, "Start.")
        await scout.until(lambda: len(gate.waiting) == 2)
        scout.session.interrupt()
    assert gate.cancelled == 2 and not scout.session.history.open_calls
    assert [m["status"] for m in scout.said("task_notification")] == ["stopped"] * 3
    assert (await scout.go("Go on.")).text == "again"


async def test_an_interrupt_leaves_background_agents_at_work(scout: World) -> None:
    gate, other = Gate(), Gate()
    other.name = "Other"  # type: ignore[misc]
    scout.open([[agent("Look.", background=True), call("Other", "o")], text("I see")], {
        "Look.": [call("Gate"), text("One tree.")]}, tools=[gate, other])
    async with anyio.create_task_group() as group:
        group.start_soon(scout.go, "Start.")
        await scout.until(lambda: bool(gate.waiting and other.waiting))
        scout.session.interrupt()
    assert (gate.cancelled, other.cancelled) == (0, 1)
    gate.open.set()
    await scout.settle()
    assert "One tree." in scout.told()


async def test_a_tool_that_does_not_end_does_not_hold_up_the_interrupt(scout: World, monkeypatch: pytest.MonkeyPatch) -> None:
    import kernel_subagents.running as running

    monkeypatch.setattr(running, "GRACE_S", 0.2)

    class Stubborn(Gate):
        async def call(self, input: Any, context: Any) -> Any:
            try:
                return await super().call(input, context)
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(3600)

    gate = Stubborn()
    scout.open([agent("Look."), text("x")], {"Look.": [call("Gate")]}, tools=[gate])
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(scout.go, "Start.")
            await scout.until(lambda: bool(gate.waiting))
            scout.session.interrupt()
    assert not scout.session.history.open_calls
