"""From the run to the exporters: a bounded queue, and one thread that owns the SDK (decision 36).

The run appends and goes on. The thread imports the SDK, makes the exporters, and turns what lies in the queue into the SDK's
objects; what came before it was ready is not lost. Neither a slow nor a broken exporter is ever waited for, but at the end,
within a limit.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kernel_telemetry.redaction import Secrets, clean
from kernel_telemetry.spans import Place, Span

if TYPE_CHECKING:
    from kernel_telemetry.exporters import Outlets
    from kernel_telemetry.switches import Switches

MOST = 20_000
"""Records that wait at most; more of them are dropped and counted."""


class Event(Struct):
    """One log record; ``name`` without the prefix where it begins with ``kernel.``."""

    name: str
    attributes: dict[str, Any]
    time: int
    place: Place | None


class Point(Struct):
    """One measurement. ``kind``: ``counter``, ``histogram`` or ``gauge``."""

    name: str
    kind: str
    unit: str
    value: float
    attributes: dict[str, Any]


class _Flush(Struct):
    """Export all that was put before. ``last``: nothing more will come for now."""

    done: threading.Event
    seconds: float
    last: bool


Record = Event | Point | Span | _Flush


class Pipeline:
    """One per harness. Its methods may be called from any thread and never block but for ``flush``.

    :param make: builds the outlets; called once, in the pipeline's thread.
    :param log: takes lines for the debug log.
    """

    def __init__(self, switches: Switches, make: Callable[[Pipeline], Outlets]) -> None:
        self.switches = switches
        self.log: Callable[[str], None] = lambda text: None
        self.failures: list[str] = []
        """What a person must know: exporters that cannot be made, a headers helper that fails. Taken by ``Life``."""
        given = [value for signal in (switches.metrics, switches.logs, switches.traces) for value in signal.headers.values()]
        self.secrets = Secrets(more=[*given, *(value.rpartition(" ")[2] for value in given)])
        self.hurry: list[threading.Event] = []
        """Set while ``flush`` waits: a failed export is not tried again."""
        self.common: dict[str, Any] = {}
        """Attributes of every record that the thread finds out, such as ``user.id``."""
        self.users = 0
        """Conversations that are open."""
        self._make = make
        self._queue: deque[Record] = deque()
        self._some = threading.Event()
        self._dropped = 0
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def put(self, record: Record) -> None:
        """Take a record; where too many wait it is dropped."""
        if len(self._queue) >= MOST:
            self._dropped += 1
            return
        self._queue.append(record)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
                self._thread.start()
        self._some.set()

    def flush(self, seconds: float, *, last: bool = False) -> bool:
        """Wait until all that was put is exported, at most that long. Whether it was.

        :param last: the threads end then; a later record begins anew.
        """
        if self._thread is None:
            return True
        marker = _Flush(threading.Event(), seconds, last and "prometheus" not in self.switches.metrics.exporters)
        self._queue.append(marker)
        self._some.set()
        return marker.done.wait(seconds)

    # -- the thread ------------------------------------------------------------------------------------------------------
    def _run(self) -> None:
        outlets: Outlets | None = None
        try:
            outlets = self._make(self)
        except Exception as error:
            self.failures.append(f"plugin telemetry: nothing is exported: {type(error).__name__}: {error}")
        while True:
            self._some.wait()
            self._some.clear()
            while self._queue:
                record = self._queue.popleft()
                if isinstance(record, _Flush):
                    self._tell_lost()
                    threading.Thread(target=self._flush, args=(outlets, record), name="telemetry flush", daemon=True).start()
                    with self._lock:
                        if record.last and not self._queue:
                            self._thread = None
                            return
                elif outlets is not None:
                    try:
                        self._one(outlets, record)
                    except Exception as error:
                        self.log(f"telemetry: a record was lost: {type(error).__name__}: {error}")
            self._tell_lost()

    def _tell_lost(self) -> None:
        if self._dropped:
            lost, self._dropped = self._dropped, 0
            self.log(f"telemetry: {lost} records were dropped: more than {MOST} were waiting")

    def _one(self, outlets: Outlets, record: Event | Point | Span) -> None:
        record.attributes = self._clean(record.attributes)
        if isinstance(record, Event):
            outlets.event(record)
        elif isinstance(record, Point):
            outlets.point(record)
        else:
            record.events = [(name, time, self._clean(attributes, common=False)) for name, time, attributes in record.events]
            record.error = str(clean(record.error, self.secrets, self.switches.content_max))
            outlets.span(record)

    def _clean(self, attributes: dict[str, Any], common: bool = True) -> dict[str, Any]:
        found = {name: clean(value, self.secrets, self.switches.content_max) for name, value in attributes.items()}
        return {name: value for name, value in {**found, **(self.common if common else {})}.items() if value is not None}

    def _flush(self, outlets: Outlets | None, asked: _Flush) -> None:
        for event in self.hurry:
            event.set()
        if outlets is not None:
            outlets.flush(asked.seconds)
        asked.done.set()
        if asked.last and outlets is not None:
            outlets.shutdown()
        else:
            for event in self.hurry:
                event.clear()
