"""The recorder's side of one run: every step is written down as it happens."""

from __future__ import annotations

import os
import platform
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from kernel import CONTRACT, __version__
from kernel_replay import places, wire
from kernel_replay.clocks import RecordedClock
from kernel_replay.recording import VERSION, Event, Header, Writer, digest
from kernel_replay.roles import Roles, Step, Steps
from kernel_replay.strand import strand, within

if TYPE_CHECKING:
    from kernel import Harness


class Tape:
    """What is recorded goes through here. The first failure to write ends the recording, never the run, and is announced."""

    def __init__(self, harness: Harness, path: Path) -> None:
        self.harness = harness
        self.roles = Roles(harness)
        self.steps = Steps()
        seed = os.urandom(16).hex()
        self.clock = RecordedClock(harness.clock, seed, self._sleep)
        spill = tempfile.mkdtemp(prefix="kernel-") if not harness.options.persist else ""
        self.spill = spill
        self.foreign: list[Any] = []
        """Blocks for the model that came from outside of the run."""
        header = Header(
            recording=VERSION, kernel=__version__, contract=CONTRACT, seed=seed, began=self.clock.began.isoformat(),
            cwd=str(harness.options.cwd), home=str(harness.settings.config_dir), platform=platform.platform(),
            zone=str(self.clock.began.astimezone().utcoffset()), spill=spill,
            options=places.options(harness.options), plugins=places.plugins(harness), settings=places.settings(harness),
            environment=places.environment(), keys=places.keys())
        self._writer: Writer | None = Writer(path, header, places.secrets())

    # -- writing -----------------------------------------------------------------------------------------------------------
    def write(self, kind: Any, step: Step, data: Any = None, *, by: str = "") -> None:
        drawn, self.clock.drawn = self.clock.drawn, {}
        self._append(Event(kind=kind, step=step, at=self.clock.since(), by=by, drawn=drawn,
                           data=data if isinstance(data, Raw) else Raw(wire.encode(data))))

    def _append(self, event: Event) -> None:
        if self._writer is None:
            return
        try:
            self._writer.append(event)
        except OSError as error:
            self._give_up(error)

    def keep(self, value: bytes) -> str:
        """Keep a JSON value beside the events; its digest."""
        if self._writer is None:
            return digest(value)
        try:
            return self._writer.blob(value)
        except OSError as error:
            self._give_up(error)
            return digest(value)

    def _give_up(self, error: OSError) -> None:
        writer, self._writer = self._writer, None
        assert writer is not None
        writer.close()
        self.harness.announce(f"the recording {writer.path} ends here: {error.strerror}. The run goes on unrecorded")

    def close(self) -> None:
        if self._writer is not None:
            self.write("closed", ("", "", "", 0))
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self.spill:
            try:
                os.rmdir(self.spill)
            except OSError:
                pass  # it is used

    # -- what is no step of the middleware ---------------------------------------------------------------------------------
    def effect(self, name: str, agent: str | None, *values: Any) -> None:
        """Something came to the session from outside of the run."""
        self.write("effect", (name, agent or "", "", 0), list(values), by=strand())

    async def _sleep(self, place: str, seconds: float) -> None:
        step = self.steps.next("sleep", None, place)
        self.write("begin", step, seconds)
        ended = "cancelled"
        try:
            with within(strand()):
                await self.clock.inner.sleep(seconds)
            ended = "over"
        finally:
            self.write("end", step, {ended: True})

