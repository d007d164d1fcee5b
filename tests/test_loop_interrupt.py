"""An interrupt stops the stream or the tools, never the session, and loses nothing that was finished (loop contract, 9.4)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from kernel.clock import Clock
from kernel.errors import ModelError
from kernel.events import StopResult
from kernel.messages import normalise
from kernel.models import ModelInfo, ModelRequest
from kernel.output import AssistantMessage, ResultMessage, UserMessage
from kernel.session import Session
from kernel.testing import Kit, ScriptedModel, Turn, call, module, text

pytestmark = pytest.mark.anyio

MARK, MARK_TOOLS = "[Request interrupted by user]", "[Request interrupted by user for tool use]"


async def interrupted(session: Session, running: anyio.Event, prompt: str = "go") -> ResultMessage:
    """Submit, and interrupt as soon as ``running`` is set."""
    results: list[ResultMessage] = []

    async def submit() -> None:
        results.append(await session.submit(prompt))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(submit)
            await running.wait()
            session.interrupt()
    return results[0]


async def check(kit: Kit, session: Session, result: ResultMessage, reason: str, mark: str) -> list[dict[str, Any]]:
    """What holds after every interrupt; the session is used once more. Returns the history before that."""
    assert (result.subtype, result.is_error, result.terminal_reason) == ("error_during_execution", True, reason)
    assert [m for m in kit.outputs if isinstance(m, ResultMessage)] == [result]
    history = session.history.wire()
    pairs: Any = [(m["role"], m["content"]) for m in history]
    assert normalise(pairs) == (pairs, [])
    assert history[-1]["role"] == "user" and history[-1]["content"][-1] == text(mark)
    assert json.dumps(history).count("[Request interrupted by user") == 1
    shown = [m for m in kit.outputs if isinstance(m, UserMessage) and m.message["content"] == [text(mark)]]
    assert len(shown) == 1
    kit.model.turns = [text("back")]
    with anyio.fail_after(5):
        again = await session.submit("again")
    assert (again.result, again.terminal_reason) == ("back", "completed"), "the interrupt was used up"
    return history


class Stalls:
    """A provider that plays some events and then says nothing more; afterwards it plays ``turns``."""

    name = "anthropic"

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self.events = events
        self.stalled = anyio.Event()
        self.closed = False
        self.requests: list[ModelRequest] = []
        self.turns: list[Any] = []

    def resolve(self, model: str) -> ModelInfo:
        return ModelInfo(id=model)

    async def stream(self, request: ModelRequest) -> AsyncIterator[dict[str, Any]]:
        self.requests.append(request)
        if self.turns:
            async for event in ScriptedModel([self.turns.pop(0)]).stream(request):
                yield event
            return
        try:
            for event in self.events:
                yield event
            self.stalled.set()
            await anyio.sleep_forever()
        finally:
            self.closed = True

    async def aclose(self) -> None:
        pass


def block(index: int, kind: str, pieces: list[dict[str, Any]], **fields: Any) -> list[dict[str, Any]]:
    return [{"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}},
            *({"type": "content_block_delta", "index": index, "delta": d} for d in pieces),
            {"type": "content_block_stop", "index": index}]


STREAM = [
    {"type": "message_start", "message": {"id": "msg_1", "model": "m"}},
    *block(0, "thinking", [{"type": "thinking_delta", "thinking": "hm"}], thinking="", signature="s"),
    *block(1, "text", [{"type": "text_delta", "text": "one "}, {"type": "text_delta", "text": "two"}], text=""),
    *block(2, "server_tool_use", [], id="s1", name="web_search", input={}),
    *block(3, "tool_use", [{"type": "input_json_delta", "partial_json": '{"n": 1}'}], id="a", name="Probe", input={}),
    *block(4, "tool_use", [{"type": "input_json_delta", "partial_json": '{"n": 2}'}], id="b", name="Probe", input={}),
    *block(5, "text", [{"type": "text_delta", "text": "three"}], text="")]


@pytest.mark.parametrize("at", range(len(STREAM) + 1))
async def test_an_interrupt_at_any_event_of_the_stream(at: int, tmp_path: Path, probe: Any) -> None:
    events = STREAM[:at]
    model = Stalls(events)
    kit = Kit(tmp_path, model=model, tools=[tool := probe()])
    session = kit.open()
    result = await interrupted(session, model.stalled)
    assert model.closed, "the stream was left open"
    history = await check(kit, session, result, "aborted_streaming", MARK)
    stopped = {e["index"] for e in events if e["type"] == "content_block_stop"}
    shown = "".join(e["delta"]["text"] for e in events if e.get("delta", {}).get("type") == "text_delta")
    kept = [b for m in history if m["role"] == "assistant" for b in m["content"]]
    assert "".join(b["text"] for b in kept if b["type"] == "text") == shown, "text that was shown is kept"
    calls = [n for n in (3, 4) if n in stopped]
    assert [b["id"] for b in kept if b["type"] == "tool_use"] == ["ab"[n - 3] for n in calls], "a call counts when it is complete"
    answered = [b for m in history for b in m["content"] if b["type"] == "tool_result"]
    assert [b["is_error"] for b in answered] == [True] * len(calls)
    assert tool.ran == []
    aborted = [m for m in kit.outputs if isinstance(m, AssistantMessage) and m.aborted]
    assert len(aborted) == len(kept) and all(m.message["stop_reason"] is None for m in aborted)


async def test_an_interrupt_while_tools_run(tmp_path: Path, probe: Any) -> None:
    """Finished results are kept, running tools are cancelled, the others are not begun."""
    running, ended = anyio.Event(), []

    async def run(input: dict[str, Any], context: Any) -> str:
        if input["n"] == 0:
            return "finished"
        running.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(input["n"])
        return "never"

    calls = [call("Probe", n=0), call("Probe", n=1), call("Later", n=2), call("Nothing")]
    kit = Kit(tmp_path, [calls], tools=[probe(run=run, safe=True), later := probe("Later")])
    session = kit.open()
    result = await interrupted(session, running)
    history = await check(kit, session, result, "aborted_tools", MARK_TOOLS)
    assert ended == [1] and later.ran == []
    answers = history[2]["content"]
    assert [b.get("tool_use_id") for b in answers[:-1]] == ["call_1", "call_2", "call_3", "call_4"]
    assert answers[0]["content"] == "finished" and "is_error" not in answers[0]
    assert [b["content"] for b in answers[1:3]] == ["The call was interrupted by the user."] * 2
    assert "unknown_tool" in answers[3]["content"]
    shown = [m.message["content"][0]["tool_use_id"] for m in kit.outputs if isinstance(m, UserMessage) and m.tool_use_result]
    assert sorted(shown) == ["call_1", "call_2", "call_3", "call_4"], "each result is shown once"


async def test_a_result_is_kept_when_the_interrupt_comes_while_hooks_look_at_it(tmp_path: Path, probe: Any) -> None:
    looking = anyio.Event()

    async def slow(event: Any) -> None:
        looking.set()
        await anyio.sleep_forever()

    kit = Kit(tmp_path, [call("Probe")], tools=[probe(run=lambda *_: "finished")], hooks={"h": module(post_tool_use=slow)})
    session = kit.open()
    result = await interrupted(session, looking)
    history = await check(kit, session, result, "aborted_tools", MARK_TOOLS)
    assert history[2]["content"][0]["content"] == "finished"
    recorded = [e for e in session.transcript.entries if "toolUseResult" in e.extra]  # type: ignore[attr-defined]
    assert len(recorded) == 1


@pytest.mark.parametrize("where", ["pre_tool_use", "asker", "permission_request"])
async def test_an_interrupt_while_a_call_waits_for_leave(where: str, tmp_path: Path, probe: Any) -> None:
    waiting = anyio.Event()

    async def slow(event: Any) -> None:
        waiting.set()
        await anyio.sleep_forever()

    async def asker(*_: Any) -> dict[str, Any]:
        await slow(None)
        return {"behavior": "allow"}

    hooks = {"h": module(**{where: slow})} if where != "asker" else {}
    kit = Kit(tmp_path, [call("Probe")], tools=[tool := probe()], hooks=hooks, policy=lambda *_: "ask")
    session = kit.open()
    session.asker = asker
    result = await interrupted(session, waiting)
    assert tool.ran == []
    kit.policy._decide = lambda *_: "allow"
    await check(kit, session, result, "aborted_tools", MARK_TOOLS)
    assert not session.asking.locked()


async def test_an_interrupt_before_the_first_request_is_not_lost_and_no_request_is_made(tmp_path: Path) -> None:
    kit = Kit(tmp_path, [text("never")])
    session = kit.open()
    session.interrupt()
    result = await session.submit("go")
    assert kit.model.requests == []
    history = await check(kit, session, result, "aborted_streaming", MARK)
    assert history == [{"role": "user", "content": [text("go"), text(MARK)]}]


async def test_an_interrupt_while_the_prompt_is_looked_at(tmp_path: Path) -> None:
    kit = Kit(tmp_path, [text("never")], hooks={"h": module(
        user_prompt_submit=lambda event, session: session.interrupt() if event.prompt == "go" else None)})
    session = kit.open()
    result = await session.submit("go")
    assert kit.model.requests == []
    await check(kit, session, result, "aborted_streaming", MARK)


async def test_an_interrupt_between_a_batch_and_the_next_request(tmp_path: Path, probe: Any) -> None:
    kit = Kit(tmp_path, [call("Probe"), text("never")], tools=[probe()], hooks={"h": module(
        post_tool_batch=lambda event, session: session.interrupt())})
    session = kit.open()
    result = await session.submit("go")
    assert len(kit.model.requests) == 1
    await check(kit, session, result, "aborted_streaming", MARK)


async def test_an_interrupt_while_a_stop_hook_sends_the_turn_on(tmp_path: Path) -> None:
    def stop(event: Any, session: Session) -> StopResult | None:
        if event.stop_hook_active or event.last_assistant_message == "back":
            return None
        session.interrupt()
        return StopResult(decision="block", reason="on and on")

    kit = Kit(tmp_path, [text("first"), text("never")], hooks={"h": module(stop=stop)})
    session = kit.open()
    result = await session.submit("go")
    assert len(kit.model.requests) == 1
    await check(kit, session, result, "aborted_streaming", MARK)


async def test_an_interrupt_while_a_retry_waits(tmp_path: Path) -> None:
    class Waits(Clock):
        def __init__(self) -> None:
            self.waiting = anyio.Event()

        async def sleep(self, seconds: float) -> None:
            self.waiting.set()
            await anyio.sleep_forever()

    clock = Waits()
    kit = Kit(tmp_path, [Turn(fail=ModelError("busy", kind="overloaded_error", status=529))], clock=clock)
    session = kit.open()
    result = await interrupted(session, clock.waiting)
    history = await check(kit, session, result, "aborted_streaming", MARK)
    assert len(history) == 1


async def test_an_interrupt_runs_no_stop_hook_and_no_batch_hook(tmp_path: Path, probe: Any) -> None:
    seen: list[str] = []
    running = anyio.Event()

    async def run(input: Any, context: Any) -> str:
        running.set()
        await anyio.sleep_forever()
        return "never"

    hooks = module(stop=lambda event: seen.append("stop"), stop_failure=lambda event: seen.append("stop_failure"),
                   post_tool_batch=lambda event: seen.append("batch"), post_tool_use_failure=lambda event: seen.append("failure"))
    kit = Kit(tmp_path, [call("Probe")], tools=[probe(run=run)], hooks={"h": hooks})
    session = kit.open()
    await interrupted(session, running)
    assert seen == []


async def test_cancelling_the_run_from_outside_passes_through(tmp_path: Path, probe: Any) -> None:
    """A program that embeds the kernel may give up on a turn; nothing may swallow that."""
    running, ended = anyio.Event(), []

    async def run(input: Any, context: Any) -> str:
        running.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(True)
        return "never"

    session = Kit(tmp_path, [call("Probe")], tools=[probe(run=run)]).open()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.submit, "go")
            await running.wait()
            tasks.cancel_scope.cancel()
    assert ended == [True]
