"""The three output formats of print mode, from a session's events (headless contract, section 4). Standard library only."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

_STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def warn(text: str) -> None:
    """Names of files and fields in it come from strangers, and must not steer a terminal."""
    print("Warning: " + _STEERS.sub("\ufffd", text), file=sys.stderr, flush=True)


class Output:
    """Takes each message of the session as its line.

    :param kind: ``text``, ``json`` or ``stream-json``.
    """

    def __init__(self, kind: str, *, verbose: bool) -> None:
        self._kind = kind
        self._verbose = verbose
        self._result: bytes | None = None
        self._messages: list[bytes] = []
        self._said: set[str] = set()

    def take(self, line: bytes) -> None:
        """:raises OSError: stdout cannot be written."""
        if self._kind == "stream-json":
            write(line + b"\n")
            return
        if b'"result"' in line[:20]:
            self._result = line
        if self._kind == "json" and self._verbose:
            self._messages.append(line)
        elif self._kind == "text" and b'"system"' in line[:20]:
            self._system(json.loads(line))

    def _system(self, message: dict[str, Any]) -> None:
        if message.get("subtype") == "api_retry":
            status = f" ({message['error_status']})" if message.get("error_status") else ""
            wait = round(float(message.get("retry_delay_ms") or 0) / 1000, 1)
            tries = f"try {message.get('attempt')} of {message.get('max_retries')}"
            print(f"The model could not be asked{status}; {tries} in {wait} s", file=sys.stderr, flush=True)
        if message.get("subtype") == "informational" and message.get("level") == "warning":
            self.warn(str(message.get("content", "")))

    def warn(self, text: str) -> None:
        if self._kind != "text" or text not in self._said:
            self._said.add(text)
            warn(text)

    def finish(self) -> None:
        """The run is over; write what is still held back.

        :raises OSError: stdout cannot be written.
        """
        if self._kind == "json" and self._verbose:
            write(b"[" + b",".join(self._messages) + b"]\n")
        elif self._kind == "json" and self._result is not None:
            write(self._result + b"\n")
        elif self._kind == "text" and self._result is not None:
            write((final_text(json.loads(self._result)) + "\n").encode("utf-8", "replace"))


def final_text(result: dict[str, Any]) -> str:
    """What a person reads: the answer, or what went wrong."""
    if isinstance(result.get("result"), str):
        return str(result["result"])
    errors = result.get("errors")
    return "\n".join(map(str, errors)) if isinstance(errors, list) else str(result.get("subtype"))


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view):]
