"""Time, ids and chance of a run that is recorded, and the same again.

Ids and chance come from the recording's seed: from it, the place in the code that asks, and how often it asked before. So nothing
has to be kept of them, and what one plugin draws does not shift what another one gets. What was read from the clock is kept, by
the same place. Only the run itself draws in this way (``strand.live``); everybody else gets real ids and real time.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from hashlib import blake2b

from kernel import Clock
from kernel_replay.strand import line, live

MICRO = 1_000_000


class _Seeded(Clock):
    """:param began: the wall clock at the beginning."""

    def __init__(self, seed: str, began: datetime) -> None:
        self._seed = seed.encode()
        self.began = began
        self._drawn: dict[str, int] = {}

    def _place(self) -> str:
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_globals.get("__name__") in (__name__, "kernel.clock"):
            frame = frame.f_back
        place = f"{frame.f_globals.get('__name__')}:{frame.f_code.co_qualname}"
        return f"{call} {place}" if (call := line()) else place

    def _bytes(self, place: str) -> bytes:
        number = self._drawn[place] = self._drawn.get(place, 0) + 1
        return blake2b(f"{place} {number}".encode(), key=self._seed[:64], digest_size=16).digest()

    def new_id(self) -> str:
        if not live():
            return super().new_id()
        raw = bytearray(self._bytes(self._place()))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        text = raw.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def random(self) -> float:
        if not live():
            return super().random()
        return int.from_bytes(self._bytes(f"{self._place()} random")[:6], "big") / (1 << 48)

    def micros(self, place: str) -> int:
        """Microseconds since the beginning."""
        raise NotImplementedError

    def now(self) -> datetime:
        return self.began + timedelta(microseconds=self.micros(self._place()))

    def monotonic(self) -> float:
        return self.micros(self._place()) / MICRO


class RecordedClock(_Seeded):
    """The real time, with what was read of it kept in ``drawn``.

    :param sleeper: a wait of the run, as a step: (place, seconds).
    """

    def __init__(self, inner: Clock, seed: str, sleeper: Callable[[str, float], Awaitable[None]]) -> None:
        super().__init__(seed, inner.now())
        self.inner = inner
        self._start = inner.monotonic()
        self._sleeper = sleeper
        self.drawn: dict[str, list[int]] = {}

    def since(self) -> int:
        return round((self.inner.monotonic() - self._start) * MICRO)

    def micros(self, place: str) -> int:
        value = self.since()
        if live():
            self.drawn.setdefault(place, []).append(value)
        return value

    async def sleep(self, seconds: float) -> None:
        if live():
            await self._sleeper(self._place(), seconds)
        else:
            await self.inner.sleep(seconds)


class ReplayedClock(_Seeded):
    """The time that was read before; where nobody read it before, the time of the last event.

    :param drawn: what was read, by place.
    """

    def __init__(self, seed: str, began: datetime, drawn: dict[str, list[int]],
                 sleeper: Callable[[str, float], Awaitable[None]]) -> None:
        super().__init__(seed, began)
        self._left = {place: deque(values) for place, values in drawn.items()}
        self._sleeper = sleeper
        self.at = 0
        """Microseconds: the last event."""

    def micros(self, place: str) -> int:
        left = self._left.get(place) if live() else None
        return left.popleft() if left else self.at

    async def sleep(self, seconds: float) -> None:
        if live():
            await self._sleeper(self._place(), seconds)
