"""Where a conversation's lines come from: files that may grow, be replaced or vanish; or a store's entries."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

Place = tuple[int, int]
"""Offset and length of a line in bytes; number of an entry and 0 where a store keeps them."""
LONGEST = 64 << 20
"""Bytes of a line; a longer one is skipped."""
_decode = msgspec.json.Decoder().decode


def object_of(raw: bytes) -> dict[str, Any] | None:
    """The line's JSON object; ``None`` for anything else."""
    try:
        value = _decode(raw)
    except (ValueError, RecursionError):
        try:
            value = _decode(raw.decode("utf-8", "replace").encode())
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def is_entry(value: object) -> bool:
    """A ``type`` that is a list or an object is none."""
    return isinstance(value, dict) and not isinstance(value.get("type"), dict | list)


class Tail:
    """A file of JSON lines that somebody else may be writing.

    ``again``: the file was replaced or cut; what was read before does not count any more. ``gone``: it is not there.
    ``damaged``: lines that are no entry.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.again = False
        self.gone = True
        self.damaged = 0
        self.size = 0
        self.changed = 0.0
        self._known: tuple[int, int] | None = None
        self._held: int | None = None

    def read(self, take: Callable[[dict[str, Any], Place], None]) -> bool:
        """Hand over the whole lines that came since. A last line without its end waits.

        :returns: whether anything is different from before.
        """
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            was, self.gone = self.gone, True
            return not was
        try:
            stat = os.fstat(file)
            back, self.gone = self.gone, False
            identity = (stat.st_dev, stat.st_ino)
            if self._known is not None and (identity != self._known or stat.st_size < self.size):
                self.again, self.size, self.damaged = True, 0, 0
                return True
            self._known, self.changed = identity, stat.st_mtime
            if stat.st_size == self.size:
                return back
            self._hold(file)
            with os.fdopen(os.dup(file), "rb") as lines:
                lines.seek(self.size)
                offset = self.size
                while raw := lines.readline(LONGEST):
                    length, whole = len(raw), raw.endswith(b"\n")
                    while not whole and length >= LONGEST and (more := lines.readline(LONGEST)):
                        raw, length, whole = b"too long", length + len(more), more.endswith(b"\n")
                    if not whole:
                        break
                    place, offset = (offset, length), offset + length
                    self.size = offset  # a line that cannot be taken is not taken again
                    if raw.strip():
                        found = object_of(raw)
                        if found is None or not is_entry(found):
                            self.damaged += 1
                        else:
                            take(found, place)
            return True
        finally:
            os.close(file)

    def at(self, place: Place) -> bytes:
        """The line's bytes as they were read, also when the file is not there any more; empty where they cannot be had."""
        if self._held is None:
            return b""
        with suppress(OSError):
            return os.pread(self._held, place[1], place[0])
        return b""

    def _hold(self, file: int) -> None:
        if self._held is None:
            self._held = os.dup(file)
        elif os.fstat(self._held).st_ino != os.fstat(file).st_ino:
            os.close(self._held)
            self._held = os.dup(file)

    def close(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None


class Kept:
    """The same for the entries of a store: read once."""

    again = gone = False
    changed = 0.0

    def __init__(self, entries: list[Any]) -> None:
        self._entries = entries
        self.damaged = 0
        self.size = 0

    def read(self, take: Callable[[dict[str, Any], Place], None]) -> bool:
        first, self.size = self.size, len(self._entries)
        for number in range(first, self.size):
            if is_entry(self._entries[number]):
                take(self._entries[number], (number, 0))
            else:
                self.damaged += 1
        return first != self.size

    def at(self, place: Place) -> bytes:
        return msgspec.json.encode(self._entries[place[0]], enc_hook=str)

    def close(self) -> None:
        pass
