"""Prompts from the argument, a pipe, or a stream of JSON lines (headless contract, section 3)."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from kernel import UsageError

MAX_PIPED_BYTES = 10 * 1024 * 1024
SILENT_STDIN_S = 3.0
"""A stdin that is open but says nothing is given up after that time, where the prompt came as an argument."""

NO_PROMPT = "Input must be provided either through stdin or as a prompt argument when using --print"
BLANK = "Input contained only whitespace; give a prompt as an argument or through stdin"


def text_prompt(argument: str | None) -> str | None:
    """The piped text, a blank line, then the argument; ``None`` where there is neither.

    :raises UsageError: too much is piped, or there is nothing but white space.
    """
    piped = _piped(has_argument=argument is not None)
    parts = [p for p in (piped, argument) if p]
    if not parts:
        if argument is not None or (piped is not None and piped != ""):
            raise UsageError(BLANK)
        return None
    prompt = "\n\n".join(p.rstrip("\n") if n < len(parts) - 1 else p for n, p in enumerate(parts))
    if not prompt.strip():
        raise UsageError(BLANK)
    return prompt


def _piped(has_argument: bool) -> str | None:
    """What stdin holds; ``None`` where it is a terminal or cannot be read."""
    try:
        mode = os.fstat(0).st_mode
        if os.isatty(0) or stat.S_ISCHR(mode):
            return None
        if has_argument and not stat.S_ISREG(mode) and not select.select([0], [], [], SILENT_STDIN_S)[0]:
            return None
        data = bytearray()
        while chunk := os.read(0, 1 << 16):
            data += chunk
            if len(data) > MAX_PIPED_BYTES:
                raise UsageError(f"more than {MAX_PIPED_BYTES} bytes were piped in", hint="name a file in the prompt instead")
    except OSError as error:
        print(f"Warning: stdin cannot be read ({error.strerror}); the run goes on with the argument", file=sys.stderr)
        return None
    return data.decode("utf-8", "replace")


async def stream_messages() -> AsyncIterator[dict[str, Any]]:
    """The JSON objects of stdin, line by line. Blank lines are skipped.

    :raises UsageError: a line is no JSON object; its number is named, its text is not.
    """
    number = 0
    async for line in _lines():
        number += 1
        if not line.strip():
            continue
        try:
            value = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise UsageError(f"line {number} of stdin is not valid JSON ({error})") from None
        if not isinstance(value, dict):
            raise UsageError(f"line {number} of stdin must be a JSON object")
        yield value


async def _lines() -> AsyncIterator[bytes]:
    """The lines of stdin, to its end. A daemon reads them: the process must not wait for another line when it is to end."""
    import asyncio
    import threading
    from contextlib import suppress

    loop = asyncio.get_running_loop()
    came: asyncio.Queue[bytes | OSError] = asyncio.Queue()

    def read() -> None:
        with suppress(RuntimeError):  # the loop is closed
            try:
                stdin = os.fdopen(os.dup(0), "rb")
                while line := stdin.readline():
                    loop.call_soon_threadsafe(came.put_nowait, line)
            except OSError as error:
                loop.call_soon_threadsafe(came.put_nowait, error)
            else:
                loop.call_soon_threadsafe(came.put_nowait, b"")

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while line := await came.get():
        if isinstance(line, OSError):
            raise line
        yield line
