"""The record of a conversation: JSON lines beside its transcript, which only the inspector reads."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

NAME = "inspect.jsonl"
VERSION = 1
LIMIT = 64 << 20
"""Bytes of one record; what comes then is not recorded."""
WAITING = 1_000
"""Lines that are held back before the first request; a session that never asks a model leaves no record."""

_encode = msgspec.json.Encoder(enc_hook=str).encode


def record_of(transcript: str | Path) -> Path:
    """Where the record of the conversation with that transcript is kept: in its folder, with which it is removed."""
    return Path(transcript).with_suffix("") / NAME


class Log:
    """One record that is being written. Every line is one write, so that two processes may write to one record.

    :raises OSError: from ``write``, where it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None
        self._size = 0
        self._full = False
        self._waiting: list[bytes] | None = []

    def write(self, line: dict[str, Any]) -> None:
        raw = _encode(line) + b"\n"
        if self._waiting is not None:
            if len(self._waiting) < WAITING:
                self._waiting.append(raw)
        elif not self._full:
            self._put(raw)

    def begin(self) -> None:
        """From now on lines go to the file, those that waited first."""
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            if waiting:
                self._put(b"".join(waiting))

    def close(self) -> None:
        """Let go of the file; a later line opens it again."""
        if self._file is not None:
            with suppress(OSError):
                os.close(self._file)
            self._file = None

    def _put(self, raw: bytes) -> None:
        if self._file is None:
            raw = self._open() + raw
        if self._size + len(raw) > LIMIT:
            self._full = True
            raw = b'{"kind":"full"}\n'
        assert self._file is not None
        os.write(self._file, raw)
        self._size += len(raw)

    def _open(self) -> bytes:
        """A torn last line of an earlier process is closed: the bytes to begin with."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._file).st_size
        return b"" if not self._size or os.pread(self._file, 1, self._size - 1) == b"\n" else b"\n"
