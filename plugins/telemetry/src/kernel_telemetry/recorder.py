"""What one conversation puts into the pipeline: events in their order, measurements, spans, with what all of them carry."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

import msgspec

from kernel import CONTRACT, Session
from kernel_telemetry import redaction, spans
from kernel_telemetry.measures import Measures
from kernel_telemetry.pipeline import Event, Pipeline, Point
from kernel_telemetry.spans import Place, Span, now
from kernel_telemetry.switches import as_any

STATE = "telemetry"
"""``session.plugin_state[STATE]`` is the ``Watch`` of a context; the root's holds the ``Recorder``."""
ACCOUNT = "telemetry.account"
"""Where a provider with logins may put ``organization.id``, ``user.account_uuid``, ``user.account_id`` and ``user.email``:
``session.root.plugin_state[ACCOUNT]``."""
_ACCOUNT = ("organization.id", "user.account_uuid", "user.account_id", "user.email")
AS_TEXT = frozenset(("success", "managed_only", "safe_mode", "used_default", "body_truncated", "marketplace.is_official"))
"""Booleans that events have as ``"true"`` and ``"false"``."""
current: ContextVar[tuple[Session, Span] | None] = ContextVar("kernel_telemetry_call", default=None)
"""The context and the execution span of the call that is running here."""
UNITS = {"cost.usage": "USD", "token.usage": "tokens", "active_time.total": "s"}


class Recorder:
    """One per conversation; its subagents share it."""

    def __init__(self, session: Session, pipeline: Pipeline) -> None:
        self.session = session
        self.pipeline = pipeline
        self.switches = pipeline.switches
        self.traced = bool(self.switches.traces.exporters)
        self.measures = Measures()
        self.sequence = 0
        self.interactions = 0
        self.interaction: Span | None = None
        self.calls: dict[str, tuple[str, Place]] = {}
        """Names and places of the run's calls, by id, for the agents below them."""
        self.counted: dict[str, dict[str, float]] = {}
        """What was told so far, by model, under the names of ``modelUsage``."""
        self.models: dict[str, str] = {}
        """Models of subagents, by agent id."""
        self.busy: list[tuple[int, int]] = []
        """When a model or a tool of this run was at work, in nanoseconds."""
        self.waited = 0
        """Nanoseconds of this run in which a person was asked."""
        self.outer: Place | None = None
        if session.options.print_mode or os.environ.get("CLAUDE_CODE_ENTRYPOINT", "").startswith("sdk-"):
            self.outer = spans.parse(os.environ.get("TRACEPARENT", ""), os.environ.get("TRACESTATE", ""))
        given = os.environ.get("CLAUDE_CODE_ENTRYPOINT")
        self._fixed = {"app.version": CONTRACT, "app.entrypoint": given or ("sdk-cli" if session.options.print_mode else "cli"),
                       "terminal.type": os.environ.get("TERM_PROGRAM") or os.environ.get("TERM")}
        wanted = {"app.version": self.switches.version, "app.entrypoint": self.switches.entrypoint}
        self._on_metrics = {name: value for name, value in self._fixed.items() if wanted.get(name, True)}

    # -- what all carry --------------------------------------------------------------------------------------------------
    def standard(self) -> dict[str, Any]:
        """Attributes of every event and span."""
        return {**self.switches.custom, **self._fixed, **self._account(), "session.id": self.session.id}

    def _account(self) -> dict[str, Any]:
        given = self.session.plugin_state.get(ACCOUNT)
        return {name: given[name] for name in _ACCOUNT if name in given} if isinstance(given, dict) else {}

    def _metric(self, attributes: dict[str, Any]) -> dict[str, Any]:
        switches = self.switches
        account = self._account()
        if not switches.account:
            account = {k: v for k, v in account.items() if k not in ("user.account_uuid", "user.account_id")}
        found = {**(switches.custom if switches.custom_on_metrics else {}), **self._on_metrics, **account, **attributes}
        if switches.session_id:
            found["session.id"] = self.session.id
        return found

    # -- events ----------------------------------------------------------------------------------------------------------
    def event(self, name: str, attributes: dict[str, Any], place: Place | None = None, time: int = 0) -> None:
        """One event. ``None`` stands for an attribute that is not there."""
        self.sequence += 1
        if not (self.switches.logs.exporters or self.switches.metrics.exporters):
            return
        time = time or now()
        told = {k: as_any(v) if k in AS_TEXT and v is not None else v for k, v in attributes.items()}
        stamp = datetime.fromtimestamp(time / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        told = {**self.standard(), **told, "event.name": name, "event.sequence": self.sequence, "event.timestamp": stamp,
                "prompt.id": self.session.prompt_id}
        if self.switches.logs.exporters:
            self.pipeline.put(Event(name, told, time, place or self.place()))
        if self.switches.metrics.exporters:
            for point in self.measures.take(name, told):
                self.pipeline.put(Point(point.name, point.kind, point.unit, point.value, self._metric(point.attributes)))

    def place(self) -> Place | None:
        """Where the running prompt is in a trace, if it is in one."""
        if self.traced and self.interaction is not None:
            return self.interaction.place
        return self.outer

    # -- metrics ---------------------------------------------------------------------------------------------------------
    def count(self, name: str, value: float, attributes: dict[str, Any]) -> None:
        """Add to a counter of the contract's section 3."""
        if value and self.switches.metrics.exporters:
            self.pipeline.put(Point(name, "counter", UNITS.get(name, ""), value, self._metric(attributes)))

    # -- spans -----------------------------------------------------------------------------------------------------------
    def begin(self, kind: str, parent: Place | None, attributes: dict[str, Any]) -> Span:
        return spans.begin(kind, parent, {**self.standard(), **attributes})

    def end(self, span: Span, attributes: dict[str, Any], error: str = "", at: int = 0) -> None:
        """End a span. ``error`` makes its status one."""
        span.end = at or now()
        span.error = error
        span.attributes.update(attributes)
        if self.traced:
            self.pipeline.put(span)

    # -- shared words ----------------------------------------------------------------------------------------------------
    def attribution(self, session: Session) -> dict[str, Any]:
        """Who asked, as requests and their metrics tell it."""
        if session.parent is None:
            return {}
        return {"agent.name": redaction.agent_name(session.agent_type or "", self.switches.details)}

    def tool_name(self, name: str) -> str:
        return redaction.tool_name(name, self.switches.details)


def size(value: Any) -> int:
    """Bytes of a value as JSON; 0 where it has none."""
    try:
        return len(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError):
        return 0


def quietly(session: Session, work: Callable[..., Any], *args: Any) -> Any:
    """Do the telemetry's own work; a fault of it goes to the debug log and never into the run."""
    try:
        return work(*args)
    except Exception as error:
        session.debug(f"telemetry: {getattr(work, '__name__', work)}: {type(error).__name__}: {error}")
        return None
