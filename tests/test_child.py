"""The context of a subagent: what is the conversation's holds inside, what is its own stays inside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from kernel.child import Child, ChildSpec
from kernel.errors import ModelError
from kernel.events import PreToolUseResult, SubagentStartResult, SubagentStopResult
from kernel.models import Prices
from kernel.output import AssistantMessage, ResultMessage, SystemMessage, UserMessage
from kernel.session import Session
from kernel.testing import Kit, ScriptedModel, call, module, text
from kernel.testing.scripted import Turn
from kernel.tools import Tool, ToolContext, ToolResult

pytestmark = pytest.mark.anyio


class Note(Tool):
    """Notes which context called it."""

    name = "Note"
    description = "Notes."
    input_schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    permission = "ask"

    def __init__(self) -> None:
        self.seen: list[tuple[str | None, str]] = []

    def prompt(self) -> str:
        return "Notes are short."

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        self.seen.append((context.session.agent_id, input["text"]))
        return ToolResult(content=f"noted {input['text']}")


def child_of(session: Session, tools: list[Tool] | None = None, **spec: Any) -> Child:
    fields = {"agent_id": "a1", "agent_type": "scout", "tool_use_id": "toolu_parent", "prompt": "You are the scout.",
              "tools": session.toolbox.offered if tools is None else tools, **spec}
    return Child(session, ChildSpec(**fields), session.transcript.child(fields["agent_id"], {"agentType": fields["agent_type"]}))


async def test_own_prompt_tools_and_history_and_the_parents_stay_as_they_were(tmp_path: Path) -> None:
    note = Note()
    kit = Kit(tmp_path, [text("main"), call("Note", text="inside"), text("the report")], tools=[note])
    session = (await kit.run("the secret of main")).session
    before = session.history.wire()
    child = child_of(session)
    ended = await child.work("look around")
    system, first = kit.model.requests[1]["system"], json.dumps(kit.model.requests[1]["messages"])
    assert system[0]["text"] == "You are the scout.\n\n# Note\nNotes are short." and "Working directory" in system[1]["text"]
    assert "look around" in first and "secret of main" not in first
    assert (ended.text, ended.reason, note.seen) == ("the report", "completed", [("a1", "inside")])
    assert session.history.wire() == before and session.agent_id is None


async def test_start_and_stop_events_take_the_place_of_the_sessions(tmp_path: Path) -> None:
    seen: list[tuple[str, str | None, str | None]] = []

    def watch(event: Any) -> None:
        seen.append((event.event_name, event.agent_id, event.agent_type))

    names = ("setup", "session_start", "session_end", "user_prompt_submit", "subagent_start", "subagent_stop", "stop")
    kit = Kit(tmp_path, [text("main"), text("report")], hooks={"w": module(**{n: lambda event: watch(event) for n in names})})
    session = (await kit.run("go")).session
    seen.clear()
    child = child_of(session)
    await child.work("look")
    await child.close()
    assert seen == [("SubagentStart", "a1", "scout"), ("SubagentStop", "a1", "scout")]


async def test_a_stop_hook_keeps_it_at_work_and_start_context_goes_ahead(tmp_path: Path) -> None:
    def stop(event: Any) -> Any:
        return None if event.stop_hook_active else SubagentStopResult(decision="block", reason="count again")

    hooks = {"h": module(subagent_start=lambda event: SubagentStartResult(additional_context="mind the gap"), subagent_stop=stop)}
    kit = Kit(tmp_path, [text("main"), text("one"), text("two")], hooks=hooks)
    session = (await kit.run("go")).session
    ended = await child_of(session).work("count")
    told = [json.dumps(r["messages"]) for r in kit.model.requests[1:]]
    assert ended.text == "two" and "mind the gap" in told[0] and "SubagentStop hook feedback: count again" in told[1]


async def test_rules_hooks_and_lasting_state_hold_inside(tmp_path: Path) -> None:
    note = Note()

    def rule(name: str, input: dict[str, Any]) -> str:
        return "deny" if input["text"] == "by rule" else "allow"

    def gate(event: Any) -> Any:
        assert (event.agent_id, event.agent_type) == ("a1", "scout")
        return PreToolUseResult(permission_decision="deny") if event.tool_input["text"] == "by hook" else None

    calls = [call("Note", text=t) for t in ("by rule", "by hook", "fine")]
    kit = Kit(tmp_path, [text("main"), calls, text("x")], tools=[note], policy=rule, hooks={"g": module(pre_tool_use=gate)})
    session = (await kit.run("go")).session
    child = child_of(session)
    await child.work("try all three")
    assert note.seen == [("a1", "fine")] and {c.agent_id for c in kit.policy.calls} == {"a1"} and len(child.denials) == 2
    denied = [m.data for m in kit.outputs if isinstance(m, SystemMessage) and m.subtype == "permission_denied"]
    assert [d["agent_id"] for d in denied] == ["a1"]
    assert child.policy is session.policy and child.asking is session.asking and child.sandbox is session.sandbox
    assert child.plugin_state == {} and child.root is session and child.environment is session.environment


async def test_the_person_that_is_asked_is_the_conversations_even_if_set_later(tmp_path: Path) -> None:
    note = Note()
    kit = Kit(tmp_path, [text("main"), call("Note", text="x"), text("done")], tools=[note], policy=lambda name, input: "ask")
    session = (await kit.run("go")).session
    child = child_of(session)
    questions: list[str | None] = []

    async def asker(question: Any, verdict: Any, call_id: str) -> dict[str, Any]:
        questions.append(question.agent_id)
        return {"behavior": "allow"}

    session.asker = asker
    await child.work("go")
    assert questions == ["a1"] and note.seen == [("a1", "x")]


@pytest.mark.parametrize("forward", [False, True])
async def test_messages_carry_the_parents_call_and_text_only_on_request(forward: bool, tmp_path: Path) -> None:
    answers = [text("main"), [text("let me see"), call("Note", text="x")], text("report")]
    kit = Kit(tmp_path, answers, tools=[Note()], extra={"forward_subagent_text": forward})
    session = (await kit.run("go")).session
    kit.outputs.clear()
    watched: list[Any] = []
    await child_of(session, watch=watched.append).work("look")
    told = [m for m in kit.outputs if isinstance(m, AssistantMessage | UserMessage)]
    kinds = [m.message["content"][0]["type"] for m in told]
    assert kinds == (["text", "tool_use", "tool_result", "text"] if forward else ["tool_use", "tool_result"])
    assert {m.parent_tool_use_id for m in told} == {"toolu_parent"}
    assert not any(isinstance(m, ResultMessage) or getattr(m, "subtype", "") == "init" for m in kit.outputs)
    assert [m.message["content"][0]["type"] for m in watched if isinstance(m, AssistantMessage)] == ["text", "tool_use", "text"]


async def test_limits_are_its_own_and_money_is_everybodys(tmp_path: Path) -> None:
    model = ScriptedModel([text("main"), call("Note", text="1"), call("Note", text="2")], prices=Prices(1e6, 0, 0, 0))
    kit = Kit(tmp_path, model=model, tools=[Note()], max_budget_usd=1000.0)
    session = (await kit.run("go")).session
    spent = session.spending.usd
    ended = await child_of(session, max_turns=2).work("go on and on")
    assert ended.reason == "max_turns" and session.options.max_turns is None
    assert session.spending.usd == pytest.approx(spent * 3) and ended.usage.input_tokens == 10
    assert session.spending.turn.input_tokens == 10, "the conversation's own usage is untouched"
    session.spending.usd = 2000.0
    assert (await child_of(session).work("more")).reason == "budget_exhausted"


async def test_an_interrupt_ends_it_with_a_legal_history(tmp_path: Path) -> None:
    class Sleep(Note):
        name = "Sleep"

        async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
            context.session.interrupt()
            await anyio.sleep_forever()
            raise AssertionError

    kit = Kit(tmp_path, [text("main"), call("Sleep", "toolu_s", text="x"), text("again")], tools=[Sleep()])
    session = (await kit.run("go")).session
    child = child_of(session)
    assert (await child.work("sleep")).reason == "aborted_tools" and not child.history.open_calls
    assert not session.interrupted
    assert (await child.work("go on")).text == "again", "it can be resumed"


async def test_cancelled_in_the_middle_it_can_still_go_on(tmp_path: Path) -> None:
    began = anyio.Event()

    class Hang(Note):
        name = "Hang"

        async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
            began.set()
            await anyio.sleep_forever()
            raise AssertionError

    kit = Kit(tmp_path, [text("main"), call("Hang", text="x"), text("again")], tools=[Hang()])
    session = (await kit.run("go")).session
    child = child_of(session)
    async with anyio.create_task_group() as group:
        group.start_soon(child.work, "hang")
        await began.wait()
        group.cancel_scope.cancel()
    assert not child.history.open_calls and (await child.work("go on")).text == "again"


async def test_an_api_error_keeps_what_was_said_before(tmp_path: Path) -> None:
    answers = [text("main"), [text("half a finding"), call("Note", text="x")],
               Turn(fail=ModelError("no", status=400, kind="invalid_request_error"))]
    kit = Kit(tmp_path, answers, tools=[Note()])
    session = (await kit.run("go")).session
    ended = await child_of(session).work("look")
    assert (ended.reason, ended.text) == ("api_error", "half a finding") and "no" in str(ended.result.result)


async def test_a_fork_begins_with_the_very_bytes_of_its_parents_request(tmp_path: Path) -> None:
    class Fork(Note):
        name = "Fork"

        async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
            session = context.session
            child = child_of(session, prompt=None, agent_type="fork")
            return ToolResult(content=(await child.work("your part")).text)

    kit = Kit(tmp_path, [[call("Note", "n", text="1"), call("Fork", "f", text="x")], text("forked"), text("end")],
              tools=[Note(), Fork()])
    run = await kit.run("go")
    main, fork = run.requests[0], run.requests[1]
    assert fork["system"] == main["system"] and fork["tools"] == main["tools"]
    assert fork["messages"][0] == main["messages"][0]
    last = fork["messages"][-1]["content"]
    assert [b.get("tool_use_id") for b in last[:2]] == ["n", "f"] and last[-1]["text"] == "your part"
    assert run.result_of("f")["content"] == "forked"


# -- the inbox ---------------------------------------------------------------------------------------------------------
async def test_a_letter_goes_behind_the_running_batch_and_starts_a_run_when_nothing_runs(tmp_path: Path) -> None:
    class Post(Note):
        name = "Post"

        async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
            context.session.inbox.post("the agent is done", {"kind": "task-notification", "id": 1})
            return ToolResult(content="posted")

    kit = Kit(tmp_path, [call("Post", text="x"), text("seen"), text("thanks")], tools=[Post()])
    run = await kit.run("go")
    content = run.requests[1]["messages"][-1]["content"]
    assert content[0]["type"] == "tool_result" and "the agent is done" in content[1]["text"] and not len(run.session.inbox)
    run.session.inbox.post("another one")
    result = await run.session.submit(None, origin=run.session.inbox.origin)
    assert result.result == "thanks" and result.origin == {"kind": "task-notification"}
    assert "another one" in run.requests[2]["messages"][-1]["content"][-1]["text"]
    shown = [m for m in kit.outputs if isinstance(m, UserMessage) and m.is_synthetic]
    assert [m.message["content"] for m in shown] == ["the agent is done", "another one"]


async def test_waiting_for_letters_ends_with_one_with_none_to_come_and_with_the_time(tmp_path: Path) -> None:
    session = Kit(tmp_path).open()
    inbox = session.inbox
    assert await inbox.wait(None), "nothing is awaited"
    inbox.awaited.add("agent")
    assert not await inbox.wait(0.01)
    async with anyio.create_task_group() as group:
        group.start_soon(inbox.wait, None)
        await anyio.wait_all_tasks_blocked()
        inbox.settle("agent")
    inbox.awaited.add("agent")
    async with anyio.create_task_group() as group:
        group.start_soon(inbox.wait, None)
        await anyio.wait_all_tasks_blocked()
        inbox.post("here")
    assert len(inbox) == 1


async def test_a_letter_that_comes_behind_the_last_request_of_a_subagent_is_read_all_the_same(tmp_path: Path) -> None:
    box: list[Child] = []

    def stop(event: Any) -> None:
        if len(kit.model.requests) == 2:
            box[0].inbox.post("one more thing")

    kit = Kit(tmp_path, [text("main"), text("one"), text("two")], hooks={"h": module(subagent_stop=stop)})
    session = (await kit.run("go")).session
    box.append(child_of(session))
    assert (await box[0].work("look")).text == "two"
    assert "one more thing" in json.dumps(kit.model.requests[2]["messages"])
