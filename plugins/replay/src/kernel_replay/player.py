"""A recording that is being replayed: which event is next, who waits for its turn, and the first that is not as it was.

Steps begin and end in the order of the recording: whoever comes to one waits until all before it has happened. So work that ran
side by side is interleaved as it was. What came from outside is given again at its place by the driver (``replay.py``).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Any

import anyio
import anyio.lowlevel
import msgspec

from kernel import EVENTS, Harness, Output, Session, encode_output
from kernel_replay import places, wire
from kernel_replay.clocks import ReplayedClock
from kernel_replay.compare import Difference, entries, first, same_set
from kernel_replay.recording import Event, Recording
from kernel_replay.roles import Roles, Step, Steps, reaches

LIVE = ("tools", "hooks", "decisions", "parts", "mcp")
"""Kinds of steps that can be done for real in a replay. With ``mcp`` servers are started; their answers are the recorded ones."""


class Player:
    """:param live: kinds of ``LIVE``.
    :param stand_ins: folders that the run wrote to -> what takes their place.
    """

    def __init__(self, recording: Recording, harness: Harness, *, live: frozenset[str] = frozenset(),
                 stand_ins: dict[str, str] | None = None) -> None:
        self.recording = recording
        self.harness = harness
        self.live = live
        self.events = recording.events
        self.steps = Steps()
        self.roles = Roles(harness)
        self.difference: Difference | None = None
        self.finished = asyncio.Event()
        """The last event has happened, or one that differs."""
        self.wake = asyncio.Event()
        """It is the driver's turn."""
        self.progress = 0
        self.lines: list[bytes] = []
        self.requests = 0
        self._sets: dict[str, None] = {}
        """What ``init`` messages list now and did not then, or the other way round, in words."""
        self.fresh: dict[str, Any] = {}
        """Parts of the requests of this replay, by digest."""
        self.stand_ins = stand_ins or {}
        self._real = [(here.encode(), there.encode()) for there, here in self.stand_ins.items()]
        now = places.plugins(harness)
        was = recording.header.plugins
        self.changed = frozenset(n for n in now if n in was and now[n]["digest"] != was[n]["digest"])
        self.added = frozenset(n for n in now if n not in was)
        self.gone = frozenset(n for n in was if n not in now)
        self._low = 0
        self._done = bytearray(len(self.events))
        self._waiting: dict[int, asyncio.Event] = {}
        self.begins: dict[Step, int] = {}
        self.ends: dict[Step, int] = {}
        self.checks: dict[Step, int] = {}
        self.pieces: dict[Step, list[int]] = {}
        self._outs: deque[int] = deque()
        self._entries: dict[str, deque[int]] = {}
        drawn: dict[str, list[int]] = {}
        self._asked: set[Step] = set()
        self._index(drawn)
        header = recording.header
        self.clock = ReplayedClock(header.seed, datetime.fromisoformat(header.began), drawn, self._sleep)
        self._advance()

    def _index(self, drawn: dict[str, list[int]]) -> None:
        deciding: dict[Step, None] = {}
        for number, event in enumerate(self.events):
            for place, values in event.drawn.items():
                drawn.setdefault(place, []).extend(values)
            step = event.step
            if event.kind == "begin":
                self.begins[step] = number
                if step[0] == "decision":
                    deciding[step] = None
                elif step[0] == "approval" or (step[0] == "hooks" and step[2].startswith("PermissionRequest")):
                    self._asked |= deciding.keys()
            elif event.kind == "end":
                self.ends[step] = number
                deciding.pop(step, None)
            elif event.kind == "piece":
                self.pieces.setdefault(step, []).append(number)
            elif event.kind == "mark":
                self.begins[step] = number
            elif event.kind == "checks":
                self.checks[step] = number
                self._done[number] = 1
            elif event.kind in ("fact", "closed"):
                self._done[number] = 1
            elif event.kind == "out" and not self.injected(event):
                self._outs.append(number)
            elif event.kind == "entry" and not self.injected(event):
                self._entries.setdefault(step[1], deque()).append(number)
        if self.gone:
            self._leave_out()

    def _leave_out(self) -> None:
        """Steps that nobody comes to, since who had them is not there: silent hooks, prompt parts, context of extensions."""
        there = {"part": set(self.harness.prompt_parts.names()), "context": {e.name for e in self.harness.extensions}}
        for step, number in self.begins.items():
            if step[0] in there:
                away = step[2] not in there[step[0]]
            else:
                away = step[0] == "hooks" and not self.harness.dispatcher.listens(EVENTS[step[2].partition(" ")[0]]) \
                    and not any("answer" in o or "error" in o for o in self.come(step).get("outcomes", ()))
            if away:
                for place in (number, self.ends.get(step)):
                    if place is not None:
                        self._done[place] = 1

    # -- whose work it is --------------------------------------------------------------------------------------------------
    def injected(self, event: Event) -> bool:
        """Whether it is given again from the recording, since nobody does it in a replay."""
        if not event.by:
            return False
        kind = event.by.partition(" ")[0]
        if kind == "tool":
            return not self.tools_are_live
        return not (kind == "hooks" and self.hooks_are_live)

    @property
    def tools_are_live(self) -> bool:
        """Whether tools that reach outside, and what stands beside them, are run for real. Nothing in a recording says so."""
        return "tools" in self.live

    @property
    def hooks_are_live(self) -> bool:
        return "hooks" in self.live

    def notes(self) -> list[str]:
        """Plugins that reach outside and are not the recorded ones: what they do there is not done for that. And what else is
        installed now and was not, or no more."""
        known = {f"plugin {name}" for name in self.added | self.gone}
        sets = [told for told in self._sets if told.partition(" is ")[0] not in known]
        return [*sets, *(f"{name} {'is new' if name in self.added else 'has changed since'}; what reaches outside of it is not "
                "run: its results are the recorded ones, --live tools,hooks runs it" for name in sorted(self.changed | self.added)
                if (plugin := self.harness.plugins.get(name)) is not None and reaches(plugin) and
                not (self.tools_are_live and self.hooks_are_live))]

    def decision_is_live(self, step: Step) -> bool:
        policy = str(self.harness.settings.own("kernel.policy") or "rules")
        owner = self.harness.plugins.provider("policies", policy)
        return "decisions" in self.live or step in self._asked or (owner is not None and owner.name in self.changed | self.added)

    def part_is_live(self, name: str) -> bool:
        owner = self.harness.prompt_parts.owner(name) or ""
        return "parts" in self.live or owner in self.changed | self.added

    # -- order -------------------------------------------------------------------------------------------------------------
    @property
    def next(self) -> Event | None:
        return self.events[self._low] if self._low < len(self.events) else None

    @property
    def low(self) -> int:
        return self._low

    async def turn(self, number: int) -> None:
        """Wait until all before that event has happened."""
        if self._low != number:
            waits = self._waiting[number] = asyncio.Event()
            try:
                await waits.wait()
            finally:
                self._waiting.pop(number, None)

    def consume(self, number: int) -> None:
        """It has happened."""
        self._done[number] = 1
        self.progress += 1
        self.clock.at = max(self.clock.at, self.events[number].at)
        if number == self._low:
            self._advance()

    def _advance(self) -> None:
        while self._low < len(self.events) and self._done[self._low]:
            self._low += 1
        event = self.next
        if event is None:
            self.finished.set()
            self.wake.set()
        elif self._low in self._waiting:
            self._waiting[self._low].set()
        elif event.kind in ("input", "effect") or (event.kind in ("out", "entry") and self.injected(event)):
            self.wake.set()

    async def begin(self, step: Step, told: Any, *, plugin: str = "") -> None:
        """A step of the run begins; what it is given has to be what it was given."""
        number = self.begins.get(step)
        if number is None or self._done[number]:
            self.unknown(Difference(kind="extra", step=step, got=told, plugin=plugin))
            await anyio.sleep_forever()
            return
        await self.turn(number)
        if told is not None:
            self._same(number, wire.encode(told), self.events[number].data, plugin)
        self.consume(number)

    def come(self, step: Step) -> dict[str, Any]:
        """What it came to in the recording; empty where that ends before."""
        number = self.ends.get(step)
        return self.events[number].read() or {} if number is not None else {}

    async def end(self, step: Step, now: Callable[[], Any] | None = None, *, plugin: str = "") -> dict[str, Any]:
        """Wait until the step's end is next.

        :param now: what it came to this time, where it was done again; it has to be the same.
        """
        number = self.ends.get(step)
        if number is None:
            await anyio.sleep_forever()
        assert number is not None
        came: dict[str, Any] = self.events[number].read() or {}
        try:
            await self.turn(number)
            if "cancelled" in came and now is None:
                await anyio.sleep_forever()  # whoever cancelled it then does so now
            if now is not None:
                self._same(number, wire.encode(now()), wire.encode(came), plugin)
        finally:
            self.consume(number)
        return came

    def over(self, step: Step) -> None:
        """Nobody waits for what is left of it."""
        for number in (self.begins.get(step), *self.pieces.get(step, ()), self.ends.get(step)):
            if number is not None and not self._done[number]:
                self.consume(number)

    async def mark(self, session: Session) -> None:
        """All is ready for a request: not before it was then."""
        step = self.steps.next("order", session, "")
        if step in self.begins:
            await self.begin(step, None)

    async def _sleep(self, place: str, seconds: float) -> None:
        step = self.steps.next("sleep", None, place)
        if step not in self.begins:
            await anyio.lowlevel.checkpoint()
            return
        await self.begin(step, None)
        await self.end(step)

    # -- what is said and kept -----------------------------------------------------------------------------------------------
    def said(self, message: Output) -> None:
        """A message of the run; it has to be the next one."""
        line = self.clean(encode_output(message))
        if self.difference is not None:
            return
        if not self._outs:
            self.unknown(Difference(kind="extra", step=("out", "", "", len(self.lines) + 1), got=_read(line)))
            return
        number = self._outs.popleft()
        self._same(number, line, self.events[number].data, step=("out", "", "", len(self.lines) + 1))
        self.lines.append(line)
        self.consume(number)

    def entered(self, agent: str, entry: dict[str, Any]) -> None:
        """Something for a transcript; it has to be the next one."""
        if self.difference is not None:
            return
        waiting = self._entries.get(agent)
        if not waiting:
            self.unknown(Difference(kind="extra", step=("entry", agent, "", 0), got=_read(self.clean(wire.encode(entry)))))
            return
        number = waiting.popleft()
        self._same(number, wire.encode(entry), self.events[number].data)
        self.consume(number)

    def clean(self, line: bytes) -> bytes:
        """With the folders of the run in the place of those of the replay."""
        for here, there in self._real:
            if here in line:
                line = line.replace(here, there)
        return line

    def here(self, path: str) -> str:
        """A path of the run, in the replay."""
        for there, here in self.stand_ins.items():
            if path == there or path.startswith(f"{there}/"):
                return here + path[len(there):]
        return path

    # -- differences -----------------------------------------------------------------------------------------------------------
    def differ(self, found: Difference) -> None:
        """The first one counts, and ends the replay."""
        if self.difference is None:
            self.difference = found
            self.finished.set()
            self.wake.set()

    def unknown(self, found: Difference) -> None:
        """It was not recorded. Where the recording ends early, it may have come behind that."""
        if not self.recording.cut:
            self.differ(found)

    def _same(self, number: int, got: bytes, expected: Any, plugin: str = "", step: Step | None = None) -> None:
        got, expected = self.clean(got), bytes(expected)
        if got == expected:
            return
        there, here = _read(expected), _read(got)
        step, told = step or self.events[number].step, ""
        if step[0] == "model":
            there, here = there["request"], here["request"]
            if there == here:
                return
            there, here = wire.unfolded(there, self.recording.blobs), wire.unfolded(here, self.fresh)
            told = "; ".join(entries("tools", there.get("tools"), here.get("tools")))  # the system prompt describes them as well
        elif step[0] == "out":
            there, here, notes = same_set(there, here)
            self._sets.update(dict.fromkeys(notes))
        found = first(there, here)
        if found is not None:
            path, was, now = found
            self.differ(Difference(kind="differs", step=step, event=number + 1, path=path, expected=was, got=now, plugin=plugin,
                                   told=told))

    def stuck(self) -> None:
        """Nothing happens any more."""
        event = self.next
        if event is not None:
            step = event.step
            told = {"end": "it did not end", "returned": "it did not end",
                    "piece": "the answer was not read on"}.get(event.kind, "")
            if event.kind == "end" and "cancelled" in self.come(step):
                told = "it was cancelled then, and now nobody does"
            number = sum(1 for e in self.events[:self._low + 1] if e.kind == "out") if event.kind == "out" else step[3]
            self.differ(Difference(kind="missing", step=(*step[:3], number), event=self._low + 1, told=told,
                                   expected=event.read()))


def _read(line: Any) -> Any:
    return msgspec.json.decode(line)
