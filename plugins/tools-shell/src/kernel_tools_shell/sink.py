"""Where a command's output goes: to memory while it is small, else to a file that only grows."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock

IN_MEMORY = 1 << 20
"""Bytes that are kept in memory before a file is opened."""


class Sink:
    """Written by the thread that reads the command's pipe, read by anybody. Raw bytes; sizes in bytes.

    A disk that refuses to take more loses output, never the command: ``failure`` says what happened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.failure = ""
        self._memory = bytearray()
        self._file: int | None = None
        self._in_file = False  # all of it; memory is empty then
        self._closed = False
        self._lock = Lock()

    def write(self, data: bytes) -> None:
        with self._lock:
            self.size += len(data)
            if self._closed or self.failure:
                return
            if self._file is None:
                self._memory += data
                if len(self._memory) > IN_MEMORY:
                    self._open()
            else:
                self._append(data)

    def keep(self) -> None:
        """From now on everything is in the file, the beginning included."""
        with self._lock:
            if not self._in_file and not self.failure:
                self._open()
            if self._closed:
                self._shut()

    def _open(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            self.failure = f"{self.path} cannot be written: {error.strerror}"
            return
        self._append(bytes(self._memory))
        if not self.failure:
            self._memory.clear()
            self._in_file = True

    def _append(self, data: bytes) -> None:
        assert self._file is not None
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._file, view):]
        except OSError as error:
            self.failure = f"{self.path} cannot be written: {error.strerror}"

    def head(self, limit: int) -> bytes:
        """The first bytes."""
        with self._lock:
            if not self._in_file:
                return bytes(self._memory[:limit])
        try:
            with self.path.open("rb") as file:
                return file.read(limit)
        except OSError:
            return b""

    def tail(self, limit: int) -> bytes:
        """The last bytes."""
        with self._lock:
            if not self._in_file:
                return bytes(self._memory[-limit:])
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - limit))
                return file.read(limit)
        except OSError:
            return b""

    def close(self, *, remove: bool = False) -> None:
        """Take no more. What was written stays readable, unless the file is removed."""
        with self._lock:
            self._closed = True
            self._shut()
            if remove and self._in_file:
                self.path.unlink(missing_ok=True)

    def _shut(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
