"""The events of one session, numbered, as far back as a bounded number of bytes reaches.

One thread writes, the server's loop reads. Whoever reads too slowly finds that events are gone; the writer never waits.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from itertools import islice

MOST_BYTES = 2 * 1024 * 1024
OVERHEAD = 200
"""Bytes that Python needs for an event besides its text."""


class Ring:
    """:param most: bytes that are kept; the newest event is kept whatever its size."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._events: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._wakers: list[Callable[[], None]] = []
        self.last = 0
        """Number of the newest event; the first is 1."""
        self.closed = False

    def put(self, data: bytes, name: str = "") -> None:
        """An event: one line, and its name where it is no message of the session."""
        with self._lock:
            self.last += 1
            event = b"id: %d\n%sdata: %s\n\n" % (self.last, f"event: {name}\n".encode() if name else b"", data)
            self._events.append((self.last, event))
            self._bytes += len(event) + OVERHEAD
            while self._bytes > self._most and len(self._events) > 1:
                self._bytes -= len(self._events.popleft()[1]) + OVERHEAD
        self._wake()

    def close(self) -> None:
        """Nothing comes any more."""
        self.closed = True
        self._wake()

    def _wake(self) -> None:
        with self._lock:
            wakers, self._wakers = self._wakers, []
        for waker in wakers:
            waker()

    @property
    def first(self) -> int:
        """Number of the oldest event that is kept; one more than ``last`` where none is."""
        with self._lock:
            return self._events[0][0] if self._events else self.last + 1

    def behind(self, seen: int, most: int = 256 * 1024) -> tuple[int, int, list[bytes]]:
        """Events behind that number, at least one where there is one: numbers of the first and the last of them, and they."""
        found: list[bytes] = []
        size = 0
        with self._lock:
            first = self._events[0][0] if self._events else self.last + 1
            start = max(first, seen + 1)
            for number, event in islice(self._events, start - first, None):
                found.append(event)
                size += len(event)
                seen = number
                if size >= most:
                    break
        return start, seen, found

    def wait(self, seen: int, waker: Callable[[], None]) -> bool:
        """Have ``waker`` called once, from any thread, when there is more than that number; false: there is already."""
        with self._lock:
            if self.last > seen or self.closed:
                return False
            self._wakers.append(waker)
            return True

    def forget(self, waker: Callable[[], None]) -> None:
        with self._lock:
            if waker in self._wakers:
                self._wakers.remove(waker)
