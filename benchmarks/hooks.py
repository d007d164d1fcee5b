"""What command hooks cost, against what the system itself takes for the same commands."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import anyio

from kernel import PreToolUse, Session
from kernel.testing import Kit, module

COMMAND = ["/bin/sh", "-c", "true"]
TOGETHER = 20
SLOWEST_S = 0.2

Row = Callable[[str, float, float | None, str, str, bool], None]


def rows(row: Row, runs: int) -> None:
    """Add the figures of hooks to the table."""
    ours, bare = single_ms(rounds=20 * runs)
    row("a no-op shell command hook", ours, bare, "ms", "at most 1.5 x", ours <= 1.5 * bare)
    ours, bare = together_ms(rounds=runs)
    row(f"{TOGETHER} command hooks on one event", ours, bare, "ms", "at most 1.5 x", ours <= 1.5 * bare)
    ours, bare = unconcerned_us()
    row("an event that no hook concerns", ours, bare, "us", "at most 2 us", ours <= 2)


def _session(hooks: dict[str, Any]) -> Session:
    """A session in the folder that this process stands in, as a command line's is."""
    return Kit(Path.cwd(), installed=["command-hooks"], settings={"hooks": hooks}).open()


def _event(session: Session) -> Any:
    return session.make(PreToolUse, tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="toolu_1")


def _handlers(commands: list[str]) -> dict[str, Any]:
    return {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": c} for c in commands]}]}


def single_ms(rounds: int) -> tuple[float, float]:
    """One hook, and the same command spawned bare with the same input, by turns; medians."""
    async def run() -> tuple[float, float]:
        session = _session(_handlers([COMMAND[2]]))
        event = _event(session)
        payload = b'{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}\n'
        ours: list[float] = []
        bare: list[float] = []
        for _ in range(rounds):
            began = time.perf_counter()
            await session.fire(event)
            ours.append(time.perf_counter() - began)
            began = time.perf_counter()
            subprocess.run(COMMAND, input=payload, capture_output=True, check=True)  # noqa: ASYNC221  # the yardstick
            bare.append(time.perf_counter() - began)
        return median(ours) * 1000, median(bare) * 1000

    return anyio.run(run)


def together_ms(rounds: int) -> tuple[float, float]:
    """Many hooks on one event; the yardstick is the slowest one plus a bare spawn."""
    async def run() -> tuple[float, float]:
        session = _session(_handlers([f"sleep {SLOWEST_S}; : {n}" for n in range(TOGETHER)]))
        event = _event(session)
        ours: list[float] = []
        bare: list[float] = []
        for _ in range(rounds):
            began = time.perf_counter()
            await session.fire(event)
            ours.append(time.perf_counter() - began)
            began = time.perf_counter()
            subprocess.run(["/bin/sh", "-c", f"sleep {SLOWEST_S}"], capture_output=True, check=True)  # noqa: ASYNC221
            bare.append(time.perf_counter() - began)
        return median(ours) * 1000, median(bare) * 1000

    return anyio.run(run)


def unconcerned_us(rounds: int = 2_000) -> tuple[float, float]:
    """One event of a session whose hooks are for other events, and one that a handler in process hears and says nothing to;
    medians of ten series, by turns."""
    async def run() -> tuple[float, float]:
        ours = _session({"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]})
        bare = Kit(Path.cwd(), hooks={"silent": module(pre_tool_use=lambda event, session: None)}).open()
        series: dict[str, list[float]] = {ours.id: [], bare.id: []}
        for _ in range(10):
            for session in (ours, bare):
                event, fire = _event(session), session.harness.dispatcher.fire
                await fire(event, session)
                began = time.perf_counter()
                for _ in range(rounds):
                    await fire(event, session)
                series[session.id].append((time.perf_counter() - began) / rounds * 1e6)
        return median(series[ours.id]), median(series[bare.id])

    return anyio.run(run)


def main() -> None:
    """``python -m benchmarks.hooks``: these figures alone."""
    def show(what: str, ours: float, bare: float | None, unit: str, bound: str, within: bool) -> None:
        ratio = f"{ours / bare:.2f} x of {bare:.2f} {unit}" if bare else ""
        print(f"{what:<40} {ours:>9.2f} {unit:<2} {ratio:<22} {bound:<15} {'ok' if within else 'OVER'}")

    with tempfile.TemporaryDirectory() as folder:
        import os

        os.chdir(folder)
        rows(show, runs=5)


if __name__ == "__main__":
    main()
