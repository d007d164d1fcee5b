"""Who is at work: the run itself, or something whose work is not done again when the run is replayed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

RUN = "run"
FRONT = "front"
"""The front end, or whoever else drives the session."""

_strand: ContextVar[str] = ContextVar("kernel_replay_strand", default=FRONT)

_line: ContextVar[str] = ContextVar("kernel_replay_line", default="")


def strand() -> str:
    """``run``, ``front``, or the step whose work it is."""
    return _strand.get()


def live() -> bool:
    return _strand.get() == RUN


def line() -> str:
    """The tool call inside which the run is at work, as an agent is; empty for the conversation itself."""
    return _line.get()


@contextmanager
def inside(call_id: str) -> Iterator[None]:
    """What the run does inside belongs to that call."""
    token = _line.set(call_id)
    try:
        yield
    finally:
        _line.reset(token)


@contextmanager
def within(name: str) -> Iterator[None]:
    """What is done inside, and every task that is begun inside, belongs to that strand."""
    token = _strand.set(name)
    try:
        yield
    finally:
        _strand.reset(token)
