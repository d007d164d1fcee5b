"""Spans and their context, without the SDK: made where things happen, turned into its objects by the pipeline's thread."""

from __future__ import annotations

import os
import re
import time
from typing import Any

from msgspec import Struct, field

_ANCHOR = time.time_ns() - time.perf_counter_ns()


def now() -> int:
    """Nanoseconds since the epoch that never go backwards within the process."""
    return _ANCHOR + time.perf_counter_ns()


class Place(Struct, frozen=True):
    """Where something belongs in a trace."""

    trace_id: int
    span_id: int
    state: str = ""

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-01"


class Span(Struct, kw_only=True):
    """One span. Times in nanoseconds; ``end`` is 0 while it runs. ``links``: other places that belong to it."""

    name: str
    kind: str
    place: Place
    parent: Place | None
    start: int
    attributes: dict[str, Any]
    events: list[tuple[str, int, dict[str, Any]]] = field(default_factory=list)
    links: list[Place] = field(default_factory=list)
    end: int = 0
    error: str = ""

    @property
    def ms(self) -> float:
        return round((self.end or now()) / 1e6 - self.start / 1e6, 3)


def begin(kind: str, parent: Place | None, attributes: dict[str, Any]) -> Span:
    """A span that starts now, below ``parent`` or at the root of a trace of its own."""
    trace = parent.trace_id if parent else int.from_bytes(os.urandom(16), "big") or 1
    place = Place(trace, int.from_bytes(os.urandom(8), "big") or 1, parent.state if parent else "")
    return Span(name=kind, kind=kind, place=place, parent=parent, start=now(), attributes=attributes)


_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


def parse(traceparent: str, tracestate: str = "") -> Place | None:
    """The place that a ``traceparent`` names; ``None`` where it is none."""
    match = _TRACEPARENT.fullmatch(traceparent.strip())
    if match is None or (match[3] and traceparent.strip().startswith("00-")):
        return None
    trace, span = int(match[1], 16), int(match[2], 16)
    return Place(trace, span, tracestate.strip()) if trace and span else None
