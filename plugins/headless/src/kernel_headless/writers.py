"""The three output formats (headless contract, section 4). stdout holds protocol bytes only; the rest goes to stderr."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from kernel import Output, ResultMessage, SystemMessage, encode_output


def shown(text: str) -> str:
    """A warning for a terminal: names of files and fields in it come from strangers, and must not steer it."""
    return _STEERS.sub("\ufffd", text)


_STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Writer:
    """Takes every message of a run in order. ``name`` is the value of ``--output-format``."""

    name: str
    protocol = True
    """Whether a program reads the output: then nothing else may get into it."""

    def __init__(self, verbose: bool) -> None:
        self.verbose = verbose
        self.descriptor = 1
        self.result: ResultMessage | None = None
        self.failure: OSError | None = None
        """Why stdout takes nothing any more: the reader is gone, the disk is full."""
        self.on_failure: Callable[[], None] = lambda: None
        """Called once, when that happens."""

    def take(self, message: Output) -> None:
        if isinstance(message, ResultMessage):
            self.result = message

    def finish(self) -> None:
        """The run is over; write what is still held back."""

    def write(self, data: bytes) -> None:
        """All bytes, whatever a pipe takes at once. Once stdout has failed, nothing is written any more."""
        view = memoryview(data)
        while view and self.failure is None:
            try:
                view = view[os.write(self.descriptor, view):]
            except OSError as error:
                self.failure = error
                self.on_failure()

    def announce(self, text: str) -> None:
        """Something that a person must see, in every format."""
        print(f"Warning: {shown(text)}", file=sys.stderr, flush=True)


class TextWriter(Writer):
    """The final text and one newline."""

    name = "text"
    protocol = False

    def __init__(self, verbose: bool) -> None:
        super().__init__(verbose)
        self._said: set[str] = set()

    def take(self, message: Output) -> None:
        super().take(message)
        if isinstance(message, SystemMessage) and message.subtype == "api_retry":
            self._retry(message.data)
        if isinstance(message, SystemMessage) and message.subtype == "informational" and message.data.get("level") == "warning":
            self.announce(str(message.data.get("content", "")))

    def _retry(self, data: dict[str, Any]) -> None:
        """A run that waits for a model that does not answer says so."""
        status = f" ({data['error_status']})" if data.get("error_status") else ""
        wait = round(float(data.get("retry_delay_ms") or 0) / 1000, 1)
        print(f"The model could not be asked{status}; try {data.get('attempt')} of {data.get('max_retries')} in {wait} s",
              file=sys.stderr, flush=True)

    def announce(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            super().announce(text)

    def finish(self) -> None:
        if self.result is not None:
            self.write((final_text(self.result) + "\n").encode("utf-8", "replace"))


class JsonWriter(Writer):
    """The result as one object; with ``--verbose`` an array of all messages."""

    name = "json"

    def __init__(self, verbose: bool) -> None:
        super().__init__(verbose)
        self._messages: list[bytes] = []

    def take(self, message: Output) -> None:
        super().take(message)
        if self.verbose:
            self._messages.append(encode_output(message))

    def finish(self) -> None:
        if self.verbose:
            self.write(b"[" + b",".join(self._messages) + b"]\n")
        elif self.result is not None:
            self.write(encode_output(self.result) + b"\n")


class StreamWriter(Writer):
    """One JSON object per line, written as it happens."""

    name = "stream-json"

    def take(self, message: Output) -> None:
        super().take(message)
        self.write(encode_output(message) + b"\n")


@contextmanager
def kept_clean(writer: Writer) -> Iterator[None]:
    """For a protocol, its messages go to a private copy of stdout, and the descriptor 1 leads to stderr meanwhile: what a tool
    prints, or a program that it starts, is read by people and breaks no line (design, D10)."""
    if not writer.protocol:
        yield
        return
    sys.stdout.flush()
    private = os.dup(1)
    printed = sys.stdout
    try:
        _redirect()
        writer.descriptor, sys.stdout = private, sys.stderr
        yield
    finally:
        sys.stdout = printed
        with suppress(OSError, ValueError):
            printed.flush()  # what was kept in its buffer by somebody who held on to it
        writer.descriptor = 1
        os.dup2(private, 1)
        os.close(private)


def _redirect() -> None:
    try:
        os.dup2(2, 1)
    except OSError:  # stderr is closed
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)


def final_text(result: ResultMessage) -> str:
    """What a person reads: the answer, or what went wrong."""
    if isinstance(result.result, str):
        return result.result
    return "\n".join(result.errors) if isinstance(result.errors, list) else result.subtype
