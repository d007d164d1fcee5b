"""What a durable run asks of an engine: hold it, record a step once, bring an answer, find what is pending.

Nothing here knows an engine. Two stand behind it (``dbos_engine``, ``temporal_engine``); they keep strings of JSON under keys,
and let one process at a time write to a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct, field

from kernel import KernelError


class DurableError(KernelError):
    """A durable run cannot begin, go on or be found."""


class Held(DurableError):
    """Another process has the run."""


class Lost(DurableError):
    """Another process took the run away from this one: nothing it does counts any more."""


class RunInfo(Struct, kw_only=True):
    """A run as lists show it. ``state``: ``running`` (a process has it), ``waiting`` (for answers to ``questions``), ``pending``
    (nobody has it: it can be taken up), ``done``. Times in seconds since the epoch."""

    id: str
    state: str
    spec: dict[str, Any]
    created: float
    changed: float
    steps: Mapping[str, str] = field(default_factory=dict)
    result: dict[str, Any] | None = None


class Run(Protocol):
    """One run that this process has. ``recorded``: key -> JSON of every step that is finished, as they were when it was taken."""

    id: str
    spec: dict[str, Any]
    recorded: dict[str, str]

    async def record(self, key: str, value: str) -> None:
        """Keep a step's outcome; durable when this returns. A key is recorded once.

        :raises Lost: another process has the run now.
        """

    async def answer(self, question: str) -> dict[str, Any]:
        """Wait for the answer to a stored question; kept, and given again to whoever asks again."""

    async def finish(self, result: dict[str, Any]) -> None:
        """The run is over; nobody can take it up any more."""

    async def leave(self) -> None:
        """Let go of a run that is not over. May be called twice."""


class StepEngine(Protocol):
    """A durable execution engine. ``name``: as the setting says it. ``shown``: its place, without passwords."""

    name: str
    shown: str

    async def begin(self, run_id: str, spec: dict[str, Any]) -> Run:
        """Begin a run, which this process has from now on.

        :raises Held: a run of that id is there already.
        """

    async def take(self, run_id: str) -> Run:
        """Take up a run that nobody has. Whoever had it before cannot write to it any more.

        :raises Held: a process that is alive has it.
        :raises DurableError: there is none, or it is over.
        """

    async def runs(self, *, run_id: str = "", done: bool = True) -> list[RunInfo]:
        """The runs, newest first.

        :param run_id: those whose id begins like that.
        :param done: those that are over as well.
        """

    async def send(self, run_id: str, question: str, answer: dict[str, Any]) -> None:
        """Answer a stored question; whether the run is held by a process or by nobody. The first answer counts."""

    async def prune(self, before: float) -> int:
        """Forget runs that were over before that time; how many there were."""

    async def close(self) -> None:
        """Let go of what must not outlive the event loop, unless runs are on. It may be used again."""
