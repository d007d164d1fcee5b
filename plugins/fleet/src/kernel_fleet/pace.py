"""One pace for the model requests of all runs of a fleet: a file that every run looks at, under a lock."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import AsyncIterator

import anyio

from kernel import Middleware, ModelCaller, ModelRequest, StreamEvent, UsageError


class Pace(Middleware):
    """Each request takes the next free moment; the moments are ``60 / per_minute`` seconds apart.

    The file holds the next free moment as text. Where it cannot be used, the request fails: a limit that is asked for holds.
    """

    name = "fleet-pace"

    def __init__(self, per_minute: float, path: str) -> None:
        self._gap = 60.0 / per_minute
        self._path = path

    @classmethod
    def read(cls, given: str) -> Pace:
        """``KERNEL_FLEET_PACE``: requests in a minute, a colon, the file."""
        number, _, path = given.partition(":")
        try:
            per_minute = float(number)
        except ValueError:
            per_minute = 0.0
        if not (0 < per_minute < float("inf")) or not path:
            raise UsageError(f"{given!r}: expected NUMBER:FILE", context="KERNEL_FLEET_PACE")
        return cls(per_minute, path)

    def take(self) -> float:
        """Seconds until the moment that was taken."""
        number = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            now = time.time()
            try:
                free = float(file.read() or 0)
            except ValueError:
                free = 0.0
            if free > now + 3600 + self._gap * 10_000:  # a clock that was set back must not stop a fleet for good
                free = now
            moment = max(now, free)
            file.seek(0)
            file.truncate()
            file.write(repr(moment + self._gap))
        return moment - now

    async def around_model(self, request: ModelRequest, next: ModelCaller) -> AsyncIterator[StreamEvent]:
        await anyio.sleep(await anyio.to_thread.run_sync(self.take))
        async for event in next(request):
            yield event
