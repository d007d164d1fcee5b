"""A worker: looks for runs that were left behind, and takes each up in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import anyio

from kernel_durable.engine import RunInfo, StepEngine

MOST_FAILURES = 3
"""Times in a row that a run may fail to be taken up before this worker leaves it alone."""


async def work(engine: StepEngine, state_of: Callable[[RunInfo], str], *, once: bool, jobs: int, every: float) -> int:
    """Until it is ended; with ``once`` until nothing is left to take up. The exit code is 1 where a run could not be."""
    failures: dict[str, int] = {}
    busy: set[str] = set()

    async def one(info: RunInfo) -> None:
        try:
            print(f"{info.id}: taken up", flush=True)
            done = await anyio.run_process([sys.executable, "-m", "kernel", "durable", "resume", info.id], check=False,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            print(f"{info.id}: {'over' if done.returncode == 0 else f'ended with {done.returncode}'}", flush=True)
            failures[info.id] = 0 if done.returncode == 0 else failures.get(info.id, 0) + 1
            if done.returncode not in (0, 75):
                print(done.stderr.decode(errors="replace")[-2000:], file=sys.stderr, flush=True)
        finally:
            busy.discard(info.id)

    async with anyio.create_task_group() as tasks:
        while True:
            found = [info for info in await engine.runs(done=False) if state_of(info) == "pending" and info.id not in busy
                     and failures.get(info.id, 0) < MOST_FAILURES]
            for info in found[:jobs - len(busy)]:
                busy.add(info.id)
                tasks.start_soon(one, info)
            if once and not found and not busy:
                return int(any(failures.values()))
            await anyio.sleep(every if not busy else min(every, 0.5))
    raise AssertionError("the loop ends by itself")
