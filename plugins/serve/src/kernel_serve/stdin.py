"""What print mode reads from stdin, for a run in another process (headless contract, section 3). Standard library only."""

from __future__ import annotations

import json
import os
import select
import stat
import sys
from collections.abc import Iterator
from typing import Any

MAX_PIPED_BYTES = 10 * 1024 * 1024
SILENT_STDIN_S = 3.0
BLANK = "Input contained only whitespace; give a prompt as an argument or through stdin"


class BadInput(Exception):
    """The text is for people."""


def text_prompt(argument: str | None) -> str | None:
    """The piped text, a blank line, then the argument; ``None`` where there is neither.

    :raises BadInput: too much is piped, or there is nothing but white space.
    """
    piped = _piped(has_argument=argument is not None)
    parts = [p for p in (piped, argument) if p]
    if not parts:
        if argument is not None or piped:
            raise BadInput(BLANK)
        return None
    prompt = "\n\n".join([*(p.rstrip("\n") for p in parts[:-1]), parts[-1]])
    if not prompt.strip():
        raise BadInput(BLANK)
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
                raise BadInput(f"more than {MAX_PIPED_BYTES} bytes were piped in (name a file in the prompt instead)")
    except OSError as error:
        print(f"Warning: stdin cannot be read ({error.strerror}); the run goes on with the argument", file=sys.stderr)
        return None
    return data.decode("utf-8", "replace")


def objects() -> Iterator[dict[str, Any]]:
    """The JSON objects of stdin, line by line.

    :raises BadInput: a line is none; its number is named, its text is not.
    """
    with os.fdopen(os.dup(0), "rb") as stdin:
        for number, line in enumerate(stdin, 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise BadInput(f"line {number} of stdin is not valid JSON ({error})") from None
            if not isinstance(value, dict):
                raise BadInput(f"line {number} of stdin must be a JSON object")
            yield value
