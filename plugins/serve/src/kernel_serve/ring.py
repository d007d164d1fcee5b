"""The events of one session, numbered, as far back as a bounded number of bytes reaches.

One thread writes, the server's loop reads. What somebody who listens has not been sent yet is kept longer; whoever is still too
slow finds that events are gone. The writer never waits.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from itertools import islice

MOST_BYTES = 2 * 1024 * 1024
MOST_BEHIND = 16 * 1024 * 1024
OVERHEAD = 200
"""Bytes that Python needs for an event besides its text."""


class Ring:
    """:param most: bytes that are kept; the newest event is kept whatever its size. :param behind: bytes that are kept for
    those who listen and have not been sent them yet."""

    def __init__(self, most: int = MOST_BYTES, behind: int = MOST_BEHIND) -> None:
        self._most = most
        self._most_behind = behind
        self._listeners: dict[object, int] = {}
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
            self._trim()
        self._wake()

    def _trim(self) -> None:
        sent = min(self._listeners.values(), default=self.last)
        while len(self._events) > 1 and self._bytes > (self._most if self._events[0][0] <= sent else self._most_behind):
            self._bytes -= len(self._events.popleft()[1]) + OVERHEAD

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

    def behind(self, listener: object, seen: int, most: int = 256 * 1024) -> tuple[int, int, list[bytes]]:
        """Events behind that number, at least one where there is one: numbers of the first and the last of them, and they.

        What comes behind ``seen`` is kept for that listener from now on, until ``leave``.
        """
        found: list[bytes] = []
        size = 0
        with self._lock:
            self._listeners[listener] = seen
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

    def leave(self, listener: object) -> None:
        with self._lock:
            self._listeners.pop(listener, None)
            self._trim()

    def forget(self, waker: Callable[[], None]) -> None:
        with self._lock:
            if waker in self._wakers:
                self._wakers.remove(waker)
