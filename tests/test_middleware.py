"""Middleware around each kind of step, through the public door: what it sees, what it may change, what its faults come to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kernel import Middleware, Outcome, Tool, ToolResult, Verdict
from kernel.testing import Kit, call, module, text

pytestmark = pytest.mark.anyio


class Note(Tool):
    name = "Note"
    description = "Notes a word."
    input_schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}

    def __init__(self) -> None:
        self.ran = 0

    async def call(self, input: dict[str, Any], context: Any) -> ToolResult:
        self.ran += 1
        return ToolResult(content=f"noted {input['word']}")


class Steps(Middleware):
    """Writes down every step; ``fails`` names one that it breaks."""

    name = "steps"

    def __init__(self, fails: str = "") -> None:
        self.seen: list[str] = []
        self.fails = fails
        self.sessions: list[str | None] = []

    def for_session(self, session: Any) -> Middleware:
        self.sessions.append(session.agent_id)
        return self

    def _note(self, step: str, detail: str) -> None:
        self.seen.append(f"{step} {detail}")
        if self.fails == step:
            raise RuntimeError("broken on purpose")

    async def around_model(self, request: Any, next: Any) -> AsyncIterator[dict[str, Any]]:
        self._note("model", request.model)
        async for event in next(request):
            yield event

    async def around_tool(self, tool: Any, input: Any, context: Any, next: Any) -> ToolResult:
        self._note("tool", tool.name)
        return await next(tool, input, context)

    async def around_hooks(self, event: Any, next: Any) -> list[Outcome]:
        if event.event_name == "PreToolUse":
            self._note("hooks", event.event_name)
        return await next(event)

    async def around_decision(self, call: Any, call_id: str, next: Any) -> Verdict:
        self._note("decision", call.tool.name)
        verdict = await next(call, call_id)
        self.seen.append(f"decided {verdict.behavior}")
        return verdict

    async def around_approval(self, call: Any, verdict: Any, call_id: str, next: Any) -> dict[str, Any]:
        self._note("approval", verdict.behavior)
        return await next(call, verdict, call_id)


async def played(tmp_path: Path, steps: Steps, *, ask: bool = False) -> tuple[Any, Any]:
    kit = Kit(tmp_path, [call("Note", word="yes"), text("done")], tools=[note := Note()],
              hooks={"quiet": module(pre_tool_use=lambda event: None),
                     "around": module(register_middleware=lambda register: register(steps))},
              policy=(lambda *_: "ask") if ask else None)
    session = kit.open()
    if ask:
        session.asker = yes
    run = await kit.run("go", session)
    return run, note


async def yes(*_: Any) -> dict[str, Any]:
    return {"behavior": "allow"}


async def test_every_kind_of_step_is_seen_in_the_order_of_the_gates(tmp_path: Path) -> None:
    run, _ = await played(tmp_path, steps := Steps(), ask=True)
    assert run.text == "done"
    assert [s.split()[0] for s in steps.seen] == ["model", "hooks", "decision", "approval", "decided", "tool", "model"]
    assert "decided allow" in steps.seen and "approval ask" in steps.seen and steps.sessions[0] is None


async def test_nobody_is_asked_nothing_where_the_policy_allows(tmp_path: Path) -> None:
    _, note = await played(tmp_path, steps := Steps())
    assert note.ran == 1 and not [s for s in steps.seen if s.startswith("approval")]


@pytest.mark.parametrize("step", ["hooks", "decision", "approval"])
async def test_a_fault_around_a_gate_refuses_the_call_and_is_said(step: str, tmp_path: Path) -> None:
    run, note = await played(tmp_path, Steps(fails=step), ask=True)
    assert note.ran == 0 and run.result.permission_denials and run.text == "done"
    assert "broken on purpose" in str(run.requests[-1]["messages"])


@pytest.mark.parametrize("answer", [None, "allow", True])
async def test_a_middleware_that_answers_no_verdict_refuses(answer: Any, tmp_path: Path) -> None:
    class Wrong(Steps):
        async def around_decision(self, call: Any, call_id: str, next: Any) -> Any:
            return answer

    run, note = await played(tmp_path, Wrong())
    assert note.ran == 0 and run.result.permission_denials


async def test_a_listener_hears_every_message_and_one_that_fails_does_no_harm(tmp_path: Path) -> None:
    kit = Kit(tmp_path, [text("hello")])
    session = kit.open()
    heard: list[Any] = []
    session.hearers += [lambda message: 1 / 0, heard.append]
    await session.submit("hi")
    assert heard == kit.outputs and len(heard) > 2
