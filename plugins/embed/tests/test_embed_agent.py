"""Agents in a program: turns, queues, interruption, cancellation, failures, permission questions."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from kernel_embed import Agent, Interrupted, Notice, Question, TurnFailed, allow, deny, tool

from kernel import AssistantMessage, ModelError, ResultMessage, SessionError, StreamMessage, SystemMessage, UsageError
from kernel.testing import Turn, call, installed, text

pytestmark = pytest.mark.anyio
needs_rules = pytest.mark.skipif(not installed("permissions"), reason="needs the plugin permissions")
needs_sessions = pytest.mark.skipif(not installed("sessions"), reason="needs the plugin sessions")
Make = Callable[..., Any]


def results_of(request: dict[str, Any]) -> dict[str, Any]:
    """Call id -> what the model was shown of it."""
    return {b["tool_use_id"]: b["content"] for m in request["messages"] for b in m["content"] if b["type"] == "tool_result"}


def legal(request: dict[str, Any]) -> None:
    """Every call of the request has exactly one result in the next message."""
    messages = request["messages"]
    for message, following in zip(messages, [*messages[1:], None], strict=True):
        calls = [b["id"] for b in message["content"] if b["type"] == "tool_use"]
        results = [b["tool_use_id"] for b in following["content"] if b["type"] == "tool_result"] if following else []
        assert sorted(calls) == sorted(results)


async def test_ask_and_stream(scripted: Make) -> None:
    agent, model = scripted(text("one"), text("two"))
    async with agent:
        reply = await agent.ask("first")
        turn = agent.stream("second")
        kinds = [type(message) async for message in turn]
        assert (await turn.reply()).text == "two"
    assert (reply.text, reply.structured, reply.reason, reply.session_id) == ("one", None, "completed", agent.session_id)
    assert reply.usage.output_tokens == 5 and isinstance(reply.messages[-1], ResultMessage)
    assert kinds == [SystemMessage, AssistantMessage, ResultMessage]
    assert [m["role"] for m in model.requests[1]["messages"]] == ["user", "assistant", "user"]


async def test_parts_of_messages_come_where_they_are_asked_for(scripted: Make) -> None:
    agent, _ = scripted(text("hello"), text("hello"), [text("I look."), call("nothing")], text("done"))
    async with agent:
        assert not [m async for m in agent.stream("a") if isinstance(m, StreamMessage)]
        assert [m async for m in agent.stream("b", partial=True) if isinstance(m, StreamMessage)]
        assert "".join([piece async for piece in agent.stream("c").text_stream]) == "I look.\n\ndone"


async def test_turns_queue_and_can_be_dropped(scripted: Make) -> None:
    agent, model = scripted(text("one"), text("three"))
    async with agent:
        first, second, third = (agent.stream(prompt) for prompt in ("a", "b", "c"))
        second.interrupt()
        assert (await third.reply()).text == "three" and (await first.reply()).text == "one"
        with pytest.raises(Interrupted) as raised:
            await second.reply()
    assert raised.value.reason == "dropped" and len(model.requests) == 2


async def test_several_agents_in_one_loop(scripted: Make) -> None:
    """They wait for each other inside a tool: none holds up the others."""
    meeting = [anyio.Event() for _ in range(3)]

    async def one(number: int) -> str:
        @tool(read_only=True)
        async def meet() -> str:
            """Meets the others."""
            meeting[number].set()
            for other in meeting:
                await other.wait()
            return f"met as {number}"

        agent, model = scripted(call("meet"), text(f"agent {number}"), tools=[meet])
        async with agent:
            answer: str = (await agent.ask("go")).text
        assert f"met as {number}" in str(model.requests[1])
        return answer

    found: dict[int, str] = {}

    async def keep(number: int) -> None:
        found[number] = await one(number)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(keep, number)
    assert found == {n: f"agent {n}" for n in range(3)}


# -- ends ------------------------------------------------------------------------------------------------------------------
def blocking_tool() -> tuple[Any, anyio.Event]:
    entered = anyio.Event()

    @tool(permission="free")
    async def wait_long() -> str:
        """Waits."""
        entered.set()
        await anyio.sleep_forever()
        return ""

    return wait_long, entered


async def test_an_interrupted_turn_raises_and_the_conversation_goes_on(scripted: Make) -> None:
    waits, entered = blocking_tool()
    agent, model = scripted(call("wait_long"), text("and on"), tools=[waits])
    async with agent:
        assert not agent.interrupt()
        turn = agent.stream("go")
        await entered.wait()
        assert agent.interrupt()
        with pytest.raises(Interrupted) as raised:
            await turn.reply()
        assert raised.value.reason == "aborted_tools" and raised.value.reply and raised.value.reply.messages
        assert (await agent.ask("go on")).text == "and on"
    legal(model.requests[-1])


@pytest.mark.parametrize("how", ["ask", "iterate", "with"])
async def test_cancelling_who_waits_ends_the_turn_and_leaves_the_conversation_legal(scripted: Make, how: str) -> None:
    waits, entered = blocking_tool()
    agent, model = scripted([call("wait_long"), call("wait_long")], text("and on"), tools=[waits])

    async def work() -> None:
        if how == "ask":
            await agent.ask("go")
        elif how == "iterate":
            async for _ in agent.stream("go"):
                pass
        else:
            async with agent.stream("go"):
                await anyio.sleep_forever()

    async with agent:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            await entered.wait()
            tasks.cancel_scope.cancel()
        assert (await agent.ask("go on")).text == "and on"
    legal(model.requests[-1])
    assert len(results_of(model.requests[-1])) == 2


async def test_wherever_a_waiter_is_cancelled_the_next_request_is_legal(scripted: Make) -> None:
    seed = 1 if "KERNEL_SAME_EXAMPLES" in os.environ else random.SystemRandom().randrange(1 << 31)
    chance = random.Random(seed)

    @tool(permission="free", parallel=True)
    async def rest(seconds: float) -> str:
        """Rests."""
        await anyio.sleep(seconds)
        return "rested"

    def turn(body: dict[str, Any]) -> Any:
        calls = [call("rest", f"call_{len(model.requests)}_{n}", seconds=chance.uniform(0, 0.004))
                 for n in range(chance.choice([0, 1, 3]))]
        return [text("I go on."), *calls]

    agent, model = scripted(*[turn] * 10_000, tools=[rest])
    cancelled = 0
    async with agent:
        for number in range(40):
            with anyio.move_on_after(chance.uniform(0, 0.03)) as scope:
                if number % 3 == 0:
                    await agent.ask(f"prompt {number}")
                elif number % 3 == 1:
                    async for _ in agent.stream(f"prompt {number}"):
                        pass
                else:
                    async with agent.stream(f"prompt {number}") as running:
                        async for _ in running:
                            await anyio.sleep(0.001)
            cancelled += scope.cancelled_caught
        model.turns.insert(0, text("the end"))
        assert (await agent.ask("end")).text == "the end"
    for request in model.requests:
        legal(request)
    assert cancelled, f"seed {seed}: nothing was cancelled"


async def test_a_turn_that_does_not_end_by_itself_is_cut_off(scripted: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel_embed import hook

    entered = anyio.Event()

    @hook("UserPromptSubmit")
    async def never(event: Any) -> None:
        if event.prompt == "go":
            entered.set()
            await anyio.sleep_forever()

    monkeypatch.setattr("kernel_embed.agent.GRACE_S", 0.05)
    agent, _ = scripted(text("and on"), hooks=[never])
    async with agent:
        turn = agent.stream("go")
        async with turn:
            await entered.wait()
        with pytest.raises(Interrupted) as raised:
            await turn.reply()
        assert raised.value.reason == "cut_off" and raised.value.reply is None
        assert (await agent.ask("go on")).text == "and on"


async def test_closing_ends_what_runs_and_drops_what_waits(scripted: Make) -> None:
    waits, entered = blocking_tool()
    agent, _ = scripted(call("wait_long"), tools=[waits])
    async with agent:
        running, waiting = agent.stream("go"), agent.stream("later")
        await entered.wait()
    for turn in (running, waiting):
        with pytest.raises(Interrupted):
            await turn.reply()
    with pytest.raises(UsageError, match="closed"):
        await agent.ask("more")
    with pytest.raises(UsageError, match="opened once"):
        await agent.open()
    await agent.close()


async def test_a_turn_that_fails_raises_with_its_reason(scripted: Make) -> None:
    refused = Turn(fail=ModelError("no such key", kind="authentication_error", status=401))
    agent, _ = scripted(refused, call("nothing"), call("nothing"), text("fine"), max_turns=1)
    async with agent:
        with pytest.raises(TurnFailed, match="no such key") as raised:
            await agent.ask("a")
        assert raised.value.reason == "api_error" and raised.value.reply and raised.value.reply.result.is_error
        seen = []
        with pytest.raises(TurnFailed, match="maximum number of turns") as raised:  # noqa: PT012
            async for message in agent.stream("b"):
                seen.append(message)
        assert raised.value.reason == "max_turns" and isinstance(seen[-1], ResultMessage)


async def test_what_cannot_be_opened_says_why(scripted: Make, tmp_path: Path) -> None:
    for wrong, said in (({"cwd": tmp_path / "gone"}, "is no directory"), ({"max_turns": 0}, "positive integer"),
                        ({"effort": "huge"}, "expected low"), ({"fork": True}, "needs resume"),
                        ({"hooks": [print]}, "is no hook"), ({"setting_sources": ["mine"]}, "unknown source")):
        with pytest.raises(UsageError, match=said):
            scripted(**wrong)
    agent, _ = scripted(model="scriptet:any")
    with pytest.raises(UsageError, match="did you mean"):
        await agent.open()
    await agent.close()
    with pytest.raises(UsageError, match="not open"):
        _ = agent.session_id


@needs_sessions
async def test_a_conversation_is_resumed_by_its_id(scripted: Make) -> None:
    agent, _ = scripted(text("noted"), persist=True)
    async with agent:
        await agent.ask("remember 42")
    again, model = scripted(text("42"), persist=True, resume=agent.session_id)
    async with again:
        assert (await again.ask("what was it?")).text == "42"
    assert again.session_id == agent.session_id and "remember 42" in str(model.requests[0])
    gone, _ = scripted(resume="11111111-1111-4111-8111-111111111111")
    with pytest.raises(SessionError, match="No conversation found"):
        await gone.open()


async def test_model_and_mode_change_between_turns(scripted: Make) -> None:
    agent, model = scripted(text("one"), text("two"))
    async with agent:
        await agent.ask("a")
        agent.set_model("scripted:other")
        agent.set_permission_mode("plan")
        await agent.ask("b")
        assert agent.session.state.permission_mode == "plan"
        with pytest.raises(UsageError):
            agent.set_model("scriptet:any")
    assert [request["model"] for request in model.requests] == ["any", "other"]


# -- who is asked, who is told -----------------------------------------------------------------------------------------------
@tool
def touch(name: str) -> str:
    """Makes a file."""
    return f"made {name}"


@needs_rules
async def test_permission_questions_go_to_the_callback(scripted: Make) -> None:
    asked: list[Question] = []

    def answer(question: Question) -> Any:
        asked.append(question)
        return {"a": allow(input={"name": "b"}), "c": deny("not c"), "d": True, "e": None, "f": "what"}[question.input["name"]]

    calls = [call("touch", f"call_{n}", name=n) for n in "acdef"]
    agent, model = scripted(calls, text("done"), tools=[touch], on_permission=answer)
    async with agent:
        await agent.ask("go")
    found = results_of(model.requests[1])
    assert found["call_a"] == "made b" and found["call_c"] == "not c" and found["call_d"] == "made d"
    assert "was refused" in found["call_e"] and "returned str" in found["call_f"]
    assert [q.input["name"] for q in asked] == list("acdef") and asked[0].tool_name == "touch"


@needs_rules
@pytest.mark.skipif(not installed("tools-user"), reason="needs the plugin tools-user")
async def test_questions_to_a_person_are_answered_through_the_input(scripted: Make) -> None:
    def answer(question: Question) -> Any:
        return allow(input={**question.input, "answers": {"Which colour?": "blue"}})

    colours = [{"label": "red", "description": "r"}, {"label": "blue", "description": "b"}]
    asks = {"question": "Which colour?", "header": "Colour", "multiSelect": False, "options": colours}
    agent, model = scripted(call("AskUserQuestion", "c1", questions=[asks]), text("done"), on_permission=answer)
    async with agent:
        await agent.ask("go")
    assert results_of(model.requests[1])["c1"] == "The person answered:\nWhich colour?\n-> blue"


@needs_rules
async def test_an_answer_can_be_remembered_for_the_conversation(scripted: Make) -> None:
    asked = []

    async def answer(question: Question) -> Any:
        asked.append(question)
        return allow(remember=True)

    agent, _ = scripted(call("touch", name="a"), call("touch", name="b"), text("done"), tools=[touch], on_permission=answer)
    async with agent:
        await agent.ask("go")
    assert len(asked) == 1 and asked[0].suggestions


@needs_rules
async def test_without_a_callback_nobody_is_asked_and_a_rule_allows(scripted: Make) -> None:
    for more, said in (({}, "nobody can be asked"), ({"allowed_tools": ["touch"]}, "made a")):
        agent, model = scripted(call("touch", "c1", name="a"), text("done"), tools=[touch], **more)
        async with agent:
            await agent.ask("go")
        assert said in str(model.requests[1]["messages"][-1])


async def test_notices_and_guards_are_not_silent(scripted: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text("{no json")
    heard: list[Notice] = []
    agent, _ = scripted(text("one"), on_notice=heard.append)
    async with agent:
        await agent.ask("go")
    assert [n for n in heard if n.guard and "settings.json" in n.text]
    with caplog.at_level(logging.WARNING, "kernel_embed"):
        agent, _ = scripted(text("one"))
        async with agent:
            await agent.ask("go")
    assert [r for r in caplog.records if "settings.json" in r.getMessage() and r.levelno == logging.WARNING]


async def test_reports_from_beside_the_conversation_start_turns_when_they_are_waited_for(scripted: Make) -> None:
    agent, model = scripted(text("one"), text("I heard"))
    async with agent:
        await agent.ask("go")
        agent.session.inbox.post("the build is done")
        assert [reply.text for reply in await agent.settle()] == ["I heard"]
        assert await agent.settle() == []
    assert "the build is done" in str(model.requests[1]["messages"][-1])


async def test_builtin_tools_are_chosen_by_name(scripted: Make) -> None:
    agent, model = scripted(text("one"), tools=[touch], builtin_tools=[])
    async with agent:
        await agent.ask("go")
    assert [t["name"] for t in model.requests[0]["tools"]] == ["touch"]


async def test_an_agent_that_nobody_closed_is_closed_with_its_loop(scripted: Make) -> None:
    closed = []
    from kernel_embed import hook

    @hook("SessionEnd")
    def ended(event: Any) -> None:
        closed.append(event.reason)

    agent, _ = scripted(text("one"), hooks=[ended])
    await agent.open()
    await agent.ask("go")
    assert agent._worker is not None
    agent._worker.cancel()
    with anyio.move_on_after(10):
        while not agent._worker.done():  # noqa: ASYNC110
            await anyio.sleep(0.01)
    assert closed == ["other"]
    await agent.close()


def test_an_agent_is_typed() -> None:
    assert Agent.ask.__annotations__["return"]
