"""Replay a recording: give the session what was asked of it and what came from outside, at its place."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import msgspec
from msgspec import Struct, field

from kernel import Harness, KernelError, ModelInfo, Registry, Session, Usage
from kernel_replay.compare import Difference
from kernel_replay.player import LIVE, Player
from kernel_replay.recording import Event, Recording, RecordingError
from kernel_replay.replayed import ReplayedPart, ReplayedSession, ReplayedTranscript, Replayer, nobody, player_context
from kernel_replay.strand import RUN, within
from kernel_replay.taps import TASKS, add_order

PATIENCE_S = 15.0
"""Seconds without any event after which the next one counts as missing. What is done again may start processes."""


class Report(Struct, kw_only=True):
    """What a replay came to.

    ``equal``: outputs, requests, transcripts and steps are the same, byte for byte, to the end of the recording. ``events``: how
    many of how many happened as recorded. Seconds: ``recorded`` what the run took then, ``took`` what it took now.
    ``changed``: plugins whose code or settings are other ones. ``notes``: what is not run or not taken over, and what the
    ``init`` message lists that it did not list then, or no more. Neither is a difference. ``lines``: the outputs, as
    ``stream-json`` writes them.
    """

    equal: bool
    difference: Difference | None
    events: int
    of: int
    requests: int
    outputs: int
    recorded: float
    took: float
    cut: str = ""
    changed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)

    @property
    def speed(self) -> float:
        """Times real speed."""
        return self.recorded / max(self.took, 1e-9)


async def replay(recording: Recording, harness: Harness, *, live: Iterable[str] = (),
                 stand_ins: dict[str, str] | None = None, patience: float = PATIENCE_S) -> Report:
    """Replay in a harness that nothing was opened from yet.

    :param live: kinds of steps that are done for real: ``tools``, ``hooks``, ``decisions``, ``parts``, ``mcp``. What plugins
        that are not the recorded ones do inside the process is done in any case; what reaches outside never without these.
    :param stand_ins: folders that the run wrote to -> what takes their place (``setting.surroundings``).
    :raises RecordingError: there is nothing to replay.
    """
    kinds = frozenset(live)
    if unknown := kinds - set(LIVE):
        raise RecordingError(f"{min(unknown)!r} cannot be done for real", context="live", hint=f"one of {', '.join(LIVE)}")
    try:
        player = Player(recording, harness, live=kinds, stand_ins=stand_ins)
        driver = Driver(player, patience)
    except (ValueError, TypeError, LookupError, AttributeError, msgspec.MsgspecError) as error:
        raise RecordingError(f"holds what no recorder writes ({type(error).__name__}: {error})",
                             context=f"recording {recording.path}") from None
    began = time.perf_counter()
    await driver.run()
    took = time.perf_counter() - began
    last = recording.events[-1].at if recording.events else 0
    return Report(
        equal=player.difference is None, difference=player.difference, events=player.low, of=len(player.events),
        requests=player.requests, outputs=len(player.lines), recorded=last / 1e6, took=took, cut=recording.cut,
        changed=[*(f"{n} differs" for n in sorted(player.changed)), *(f"{n} is new" for n in sorted(player.added)),
                 *(f"{n} is not there" for n in sorted(player.gone))],
        notes=[*recording.notes, *player.notes()], lines=player.lines)


class Driver:
    """In the place of the front end and of all that happened beside the run."""

    def __init__(self, player: Player, patience: float) -> None:
        self._player = player
        self._harness = player.harness
        self._patience = patience
        facts = [e for e in player.events if e.kind == "fact"]
        self._sessions = [e.read() for e in facts if e.step[0] == "session"]
        self._agents = {e.step[1]: e.read() for e in facts if e.step[0] == "agent"}
        self._replayer = Replayer(player)
        self._session: Session | None = None

    async def run(self) -> None:
        player = self._player
        if not self._sessions:
            raise RecordingError("ends before the conversation was opened", context=f"recording {player.recording.path}")
        self._prepare()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._watch)
                group.start_soon(self._drive, group)
                await player.finished.wait()
                if player.difference is None and not player.recording.cut:
                    await self._ended()
                group.cancel_scope.cancel()
        except* KernelError as errors:
            raise errors.exceptions[0] from None

    async def _ended(self) -> None:
        """The last event was there; what still comes is too much."""
        for _ in range(5):
            await anyio.lowlevel.checkpoint()

    def _prepare(self) -> None:
        harness, player = self._harness, self._player
        harness.clock = player.clock
        harness.middleware(self._replayer)
        parts: Registry[Any] = Registry("prompt_parts", harness.settings, harness.options)
        for part in harness.prompt_parts:
            parts.plugin = harness.prompt_parts.owner(part.name) or "kernel"
            parts(ReplayedPart(part, player))
        harness.prompt_parts = parts
        for extension in harness.extensions:
            if player.roles.context_is_outside(extension):
                extension.before_request = partial(player_context, player, extension.name, extension.before_request)
        add_order(harness, player.mark)
        harness.fresh_transcript = lambda title=None: self._transcript()  # type: ignore[method-assign]
        for extension in harness.extensions:
            extension.check(harness)

    def _transcript(self) -> ReplayedTranscript:
        return ReplayedTranscript(self._player, "", self._sessions.pop(0), self._agents)

    async def _watch(self) -> None:
        player, seen, since = self._player, -1, time.monotonic()
        while True:
            await asyncio.sleep(min(0.25, self._patience / 4))
            if player.progress != seen:
                seen, since = player.progress, time.monotonic()
            elif time.monotonic() - since > self._patience:
                player.stuck()

    async def _drive(self, group: anyio.abc.TaskGroup) -> None:
        player = self._player
        try:
            await self._events(group)
        except KernelError:
            raise
        except Exception as error:  # what stands in the event is not what a recorder writes
            step = player.next.step if player.next else ("", "", "", 0)
            player.differ(Difference(kind="failed", step=step, event=player.low + 1, told=f"{type(error).__name__}: {error}"))

    async def _events(self, group: anyio.abc.TaskGroup) -> None:
        player = self._player
        self._session = ReplayedSession(player, self._transcript(), lambda message: None)
        while not player.finished.is_set():
            event = player.next
            if event is not None and event.kind == "input":
                await self._input(event, group)
            elif event is not None and (event.kind == "effect" or (event.kind in ("out", "entry") and player.injected(event))):
                self._give(event)
                player.consume(player.low)
            else:
                player.wake.clear()
                await player.wake.wait()

    # -- what was asked of the session -------------------------------------------------------------------------------------
    async def _input(self, event: Event, group: anyio.abc.TaskGroup) -> None:
        player, session = self._player, self._session
        assert session is not None
        name, given = event.step[2], event.read()
        number = player.low
        asker = given.pop("asker", None)
        if asker is not None and session.asker is None:
            session.asker = _Asker() if asker.get("side_by_side") else nobody
        session.init_facts |= {k: v for k, v in given.pop("facts", {}).items() if k not in session.init_facts}
        player.consume(number)
        if name in ("interrupt", "set_mode", "switch", "set_title"):
            with within(RUN), suppress(Exception):  # it failed then as well, or what follows differs
                getattr(session, name)(**given)
            return
        if name in ("start", "submit", "clear", "reload", "close"):
            group.start_soon(self._run, name, given, event)
            await anyio.lowlevel.checkpoint()

    async def _run(self, name: str, given: dict[str, Any], event: Event) -> None:
        player = self._player
        back = next((n for n, e in enumerate(player.events) if e.kind == "returned" and e.step == event.step), None)
        try:
            with within(RUN):
                if name == "submit":
                    await self._session.submit(given["prompt"], uuid=given["uuid"], origin=given["origin"])  # type: ignore[union-attr]
                else:
                    await getattr(self._session, name)(**given)
        except Exception as error:
            if back is None:
                player.differ(Difference(kind="failed", step=event.step, told=f"{type(error).__name__}: {error}"))
                return
        if back is not None:
            await player.turn(back)
            player.consume(back)

    # -- what came from outside ----------------------------------------------------------------------------------------------
    def _give(self, event: Event) -> None:
        player, root = self._player, self._session
        assert root is not None
        if event.kind == "out":
            player.lines.append(bytes(event.data))
            return
        if event.kind == "entry":
            return
        name, agent = event.step[0], event.step[1]
        values = event.read()
        session = self._replayer.of_agent(agent) or root
        with within(RUN):
            if name == "letter":
                session.inbox.post(values[0], values[1])
            elif name == "settle":
                session.inbox.settle(values[0])
            elif name == "await":
                session.inbox.awaited.add(values[0])
            elif name == "context":
                session.add_context(values[0])
            elif name == "task":
                self._task(root, values[0], *values[1:])
            elif name == "spent":
                root.spending.aside(msgspec.convert(values[0], ModelInfo), msgspec.convert(values[1], Usage))


    def _task(self, root: Session, id: str, task: dict[str, Any] | None, known: dict[str, str] | None = None) -> None:
        table = root.plugin_state.setdefault(TASKS, {})
        if task is None:
            root.background_tasks.pop(id, None)
            if isinstance(table.get(id), _Task):
                table[id].status = "completed"
        else:
            root.background_tasks[id] = task
            table.setdefault(id, _Task(id, (known or {}).get("task_type", ""), (known or {}).get("description", "")))


class _Task:
    """Stands for work in the background that is not done again."""

    def __init__(self, id: str, task_type: str, description: str) -> None:
        self.id, self.task_type, self.description, self.status = id, task_type, description, "running"


class _Asker:
    side_by_side = True

    async def __call__(self, *asked: Any) -> dict[str, Any]:
        return await nobody(*asked)
