"""Time, identifiers and chance in one place, so that tests and replays can replace them."""

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

    def random(self) -> float:
        """Between 0 and 1, for what must be spread out; no secret."""
        return int.from_bytes(os.urandom(6)) / (1 << 48)

    def new_id(self) -> str:
        """A random UUID (version 4), lower case."""
        text = f"{int.from_bytes(os.urandom(16)) & ~(0xF << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def timestamp(self) -> str:
        """ISO 8601 with milliseconds and ``Z``, as transcripts have it."""
        return self.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
