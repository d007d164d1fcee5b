"""Whether a KeyboardInterrupt is a person's, or only an exception that some tool raised."""

from __future__ import annotations

import signal
from functools import partial
from types import TracebackType


def by_signal(error: KeyboardInterrupt) -> bool:
    """Whether SIGINT may have raised it. Where that cannot be told, it may.

    While an event loop runs, SIGINT has a handler in Python (the loop's own, or the one of ``asyncio.Runner``), and an
    exception that it raises has passed through its frame. Only the interpreter's default handler leaves no trace.
    """
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, signal.Handlers):
        return False  # the signal is ignored, or ends the process at once
    while isinstance(handler, partial):
        handler = handler.func
    code = getattr(getattr(handler, "__func__", handler), "__code__", None)
    return code is None or code in _codes(error.__traceback__)


def _codes(trace: TracebackType | None) -> set[object]:
    found: set[object] = set()
    while trace is not None:
        found.add(trace.tb_frame.f_code)
        trace = trace.tb_next
    return found
