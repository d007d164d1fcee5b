"""Hot paths measured inside one process: dispatch and streaming."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

from kernel import PreToolUse
from kernel.testing import Kit, ScriptedModel, module


def _event() -> PreToolUse:
    return PreToolUse(session_id="s", transcript_path="/t.jsonl", cwd="/", permission_mode="default", tool_name="Bash",
                      tool_input={"command": "ls"}, tool_use_id="toolu_1")


def _kit(hooks: dict[str, Any], **more: Any) -> Kit:
    return Kit(Path(tempfile.gettempdir()), hooks=hooks, **more)


def dispatch_p99_us(*, asynchronous: bool, rounds: int = 5000) -> float:
    """p99 of one ``fire`` with ten handlers, in microseconds."""
    def sync_handler(event: Any) -> None:
        return None

    async def async_handler(event: Any) -> None:
        return None

    handler = async_handler if asynchronous else sync_handler
    kit = _kit({f"p{n}": module(pre_tool_use=_copy(handler)) for n in range(10)})

    async def run() -> list[float]:
        event, times = _event(), []
        for _ in range(rounds):
            began = time.perf_counter()
            await kit.harness.dispatcher.fire(event)
            times.append((time.perf_counter() - began) * 1e6)
        return times

    times = sorted(anyio.run(run)[200:])
    return times[int(len(times) * 0.99)]


def _copy(handler: Any) -> Any:
    """A function object of its own: ten plugins do not share one."""
    import types

    return types.FunctionType(handler.__code__, handler.__globals__, handler.__name__, handler.__defaults__, handler.__closure__)


def empty_fire_us(rounds: int = 20000) -> float:
    """One ``fire`` that nobody listens to, in microseconds."""
    kit = _kit({})

    async def run() -> float:
        event = _event()
        began = time.perf_counter()
        for _ in range(rounds):
            await kit.harness.dispatcher.fire(event)
        return (time.perf_counter() - began) / rounds * 1e6

    return anyio.run(run)


class _Deltas(ScriptedModel):
    """Streams one answer of ``count`` text deltas."""

    count = 0

    async def stream(self, request: Any) -> Any:
        yield {"type": "message_start", "message": {"id": "m", "model": "m", "usage": {}}}
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        for _ in range(self.count):
            yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word "}}
        yield {"type": "content_block_stop", "index": 0}
        yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}
        yield {"type": "message_stop"}


def delta_cost_us(count: int = 20000) -> float:
    """What one text delta costs in the loop, with partial messages on, in microseconds."""
    def seconds(deltas: int) -> float:
        model = _Deltas()
        model.count = deltas
        kit = _kit({}, model=model, include_partial_messages=True)
        began = time.perf_counter()
        anyio.run(kit.run, "go")
        return time.perf_counter() - began

    seconds(100)
    return (seconds(count) - seconds(0)) / count * 1e6
