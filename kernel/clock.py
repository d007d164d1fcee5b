"""Time and identifiers in one place, so that tests and replays can replace them."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime


class Clock:
    """The real clock. A subclass with the same methods makes a run reproducible."""

    def now(self) -> datetime:
        """The wall clock, with time zone."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        import anyio

        await anyio.sleep(seconds)

    def new_id(self) -> str:
        """A random UUID (version 4), lower case."""
        raw = bytearray(os.urandom(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        text = raw.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def timestamp(self) -> str:
        """ISO 8601 with milliseconds and ``Z``, as transcripts have it."""
        return self.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
