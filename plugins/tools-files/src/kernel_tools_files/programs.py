"""Run a program for a tool: its lines as they come, under a time limit, and nothing of it left behind (design, D12)."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import anyio
from anyio.abc import ByteReceiveStream, Process

STDERR_BYTES = 10_000


class Ended(NamedTuple):
    """``code`` is ``None`` where the program was ended by us: at the time limit, or because enough was read."""

    code: int | None
    stderr: str
    timed_out: bool


async def run_program(command: Sequence[str], take: Callable[[bytes], bool], *, seconds: float, cwd: str,
                      separator: bytes = b"\n", stdin: bytes = b"") -> Ended:
    """Run it and hand over what it writes, piece by piece between separators.

    :param take: gets a piece without its separator; false ends the program.
    :raises OSError: it cannot be started.
    """
    process = await anyio.open_process(command, cwd=cwd, stdin=subprocess.PIPE, start_new_session=os.name == "posix")
    errors = bytearray()
    stopped = timed_out = False
    try:
        with anyio.move_on_after(seconds) as limit:
            async with anyio.create_task_group() as tasks:
                assert process.stdout and process.stderr and process.stdin
                tasks.start_soon(_collect, process.stderr, errors)
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                    if stdin:
                        await process.stdin.send(stdin)
                    await process.stdin.aclose()
                stopped = await _feed(process.stdout, take, separator)
                if stopped:
                    tasks.cancel_scope.cancel()
            if not stopped:
                await process.wait()
        timed_out = limit.cancelled_caught
    finally:
        code = process.returncode
        _kill(process)
        with anyio.CancelScope(shield=True):
            await process.aclose()
    return Ended(None if stopped or timed_out else code, errors.decode("utf-8", "replace"), timed_out)


async def _feed(stream: ByteReceiveStream, take: Callable[[bytes], bool], separator: bytes) -> bool:
    """True as soon as ``take`` has enough."""
    rest = b""
    async for chunk in stream:
        pieces = (rest + chunk).split(separator)
        rest = pieces.pop()
        for piece in pieces:
            if not take(piece):
                return True
    return bool(rest) and not take(rest)


async def _collect(stream: ByteReceiveStream, into: bytearray) -> None:
    async for chunk in stream:
        into += chunk[:STDERR_BYTES - len(into)]


def _kill(process: Process) -> None:
    """The whole process group; a program that has ended is left alone."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
