"""A permission question that waits is told to Notification hooks, once; one answered soon is not (hooks contract, 18.21)."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest

from kernel import Clock, Notification, Tool, ToolContext, ToolResult
from kernel.testing import Kit, call, module, text

pytestmark = pytest.mark.anyio


class Ask(Tool):
    name = "Ask"
    description = "For a test."
    input_schema = {"type": "object"}
    permission = "ask"

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content="ran")


class Watched(Clock):
    """Time passes when the test says so. ``waited``: the seconds that somebody sleeps, or slept."""

    def __init__(self) -> None:
        self.waited: list[float] = []
        self.passes = anyio.Event()

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        await self.passes.wait()


class Lines:
    """The front end's side (``kernel.Wire``). ``ids``: the questions that were asked."""

    busy = True

    def __init__(self, tasks: Any) -> None:
        self._tasks = tasks
        self.ids: list[str] = []

    def write(self, line: bytes) -> None:
        frame = json.loads(line)
        if frame["type"] == "control_request":
            self.ids.append(frame["request_id"])

    def spawn(self, work: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
        self._tasks.start_soon(work, *args)


async def _until(what: Callable[[], Any]) -> None:
    with anyio.fail_after(10):
        while not what():  # noqa: ASYNC110
            await anyio.sleep(0.01)


@pytest.mark.parametrize(("late", "variable", "told"), [(True, "", 1), (True, "0", 1), (False, "", 0), (True, "1", 0)])
async def test_a_question_that_waits_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool, variable: str,
                                                  told: int) -> None:
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_PERMISSION_PROMPT_NOTIFY_HOOKS", variable)
    seen: list[Notification] = []

    def notification(event: Notification) -> None:
        seen.append(event)

    clock = Watched()
    kit = Kit(tmp_path, [call("Ask", "toolu_1"), text("done")], tools=[Ask()], installed=["control"],
              policy=lambda name, input: "ask", hooks={"listener": module(notification=notification)}, clock=clock,
              input_format="stream-json", extra={"permission_prompt_tool": "stdio"})
    session = kit.open()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            lines = Lines(tasks)
            dialogue = session.harness.one("controls", "stdio").open(session, lines)
            tasks.start_soon(kit.run, "Go.", session)
            await _until(lambda: lines.ids)
            if variable != "1":
                await _until(lambda: clock.waited)
            if late:
                clock.passes.set()
                await _until(lambda: len(seen) == told)
            dialogue.take({"type": "control_response", "response": {
                "subtype": "success", "request_id": lines.ids[0], "response": {"behavior": "allow"}}})
    clock.passes.set()
    assert [(e.notification_type, e.message) for e in seen] == [
        ("permission_prompt", "A permission is needed to use Ask")] * told
    assert clock.waited == ([] if variable == "1" else [6.0])
    await session.close()
