"""The events of a session's life, and the hooks that answer them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from kernel import (
    Event,
    Outcome,
    PostCompact,
    PreCompact,
    PreToolUse,
    SessionStart,
    StopFailure,
    UserPromptExpansion,
    UserPromptSubmit,
)
from kernel_telemetry.redaction import plugin_name, tool_name
from kernel_telemetry.spans import Span

if TYPE_CHECKING:
    from kernel_telemetry.watch import Watch

CONFIGURED = "command-hooks"
"""The plugin that runs configured hooks; its table of handlers stands in ``session.plugin_state`` under the same name."""
SOURCES = {"managed": "policySettings", "cli": "flagSettings", "local": "localSettings", "project": "projectSettings",
           "user": "userSettings", "plugin": "pluginHook", "session": "pluginHook", "sdk": "flagSettings"}


class Running:
    """The hooks of one event while they run. ``facts`` are those of both events about it, once it is known what runs."""

    def __init__(self, event: Event, span: Span, plugins: set[str]) -> None:
        self.event = event
        self.span = span
        self.plugins = plugins
        self.configured = 0
        self.facts: dict[str, Any] = {}
        self.done: list[Any] = []


class Hooks:
    """What is seen of one context's events."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._running: list[Running] = []
        self._heard: object = None

    # -- before and behind -------------------------------------------------------------------------------------------------
    def begin(self, event: Event) -> Running | None:
        """An event is about to be handed to its hooks."""
        hearing = self.watch.hearing
        if isinstance(event, UserPromptExpansion):
            hearing.expanded(event)
        elif isinstance(event, UserPromptSubmit):
            hearing.prompted(event)
        elif isinstance(event, PreToolUse):
            self.watch.calls.get(event.tool_use_id, event.tool_name, event.tool_input)
        elif isinstance(event, PreCompact):
            hearing.compacting(event)
        elif isinstance(event, StopFailure):
            self.watch.asks.give_up(main=True)
        elif isinstance(event, SessionStart):
            hearing.began(event.source)
        return self._begin(event)

    def _begin(self, event: Event) -> Running | None:
        found = getattr(self.watch.session.plugins.manager.hook, event_hook(event)).get_hookimpls()
        plugins = {i.plugin_name for i in found}
        running = Running(event, self.watch.recorder.begin("hook", self.watch.parent(), {}), plugins - {CONFIGURED})
        if CONFIGURED in plugins and self._table() is None:  # the first event makes the table: looked at behind it
            return running
        if not self._announce(running):
            return None
        self._running.append(running)
        self._listen()
        return running

    def _announce(self, running: Running) -> bool:
        """Tell that hooks begin; false where there are none."""
        recorder, event = self.watch.recorder, running.event
        handlers = self._handlers(event)
        running.configured = len(handlers)
        if not handlers and not running.plugins:
            return False
        details = recorder.switches.details
        facts = {"hook_event": event.event_name, "hook_name": event.hook_name if details else _public(event),
                 "num_hooks": len(handlers) + len(running.plugins), "managed_only": self._managed_only(), "safe_mode": False,
                 "hook_source": "policySettings" if self._managed_only() else "merged"}
        if details and recorder.traced:
            labels = [h.label for h in handlers] + sorted(running.plugins)
            facts["hook_definitions"] = msgspec.json.encode(labels).decode()
        recorder.event("hook_execution_start", facts, time=running.span.start)
        running.facts = facts
        running.span.attributes.update({k: facts.get(k) for k in ("hook_event", "hook_name", "num_hooks", "hook_definitions")})
        return True

    def end(self, event: Event, running: Running | None, outcomes: list[Outcome]) -> None:
        """The hooks have answered."""
        if isinstance(event, PreToolUse) and _refuses_call(outcomes):
            self.watch.calls.refused_by_hook(event.tool_use_id, event.tool_name, event.tool_input)
        elif isinstance(event, PreCompact) and any(_blocks(o) for o in outcomes):
            self.watch.hearing.compacted(event.trigger, "blocked by a hook")
        elif isinstance(event, PostCompact):
            self.watch.hearing.compacted(event.trigger, "")
        if running is not None:
            if running in self._running:
                self._running.remove(running)
            if running.facts or self._announce(running):
                self._end(running, outcomes)
        if isinstance(event, SessionStart):
            self.watch.hearing.registered(self._all())

    def _end(self, running: Running, outcomes: list[Outcome]) -> None:
        recorder = self.watch.recorder
        blocking = sum(_blocks(o) for o in outcomes)
        errors = sum(o.error is not None for o in outcomes)
        errors += sum(bool(getattr(d.reading, "failed", "")) and not d.ran.timed_out for d in running.done)
        cancelled = sum(d.ran.timed_out for d in running.done)
        total = running.facts["num_hooks"]
        counts = {"num_blocking": min(blocking, total), "num_non_blocking_error": min(errors, total), "num_cancelled": cancelled}
        counts["num_success"] = max(total - sum(counts.values()), 0)
        mine = {*running.plugins, CONFIGURED} if running.configured else running.plugins
        took: dict[str, float] = {}
        for outcome in (o for o in outcomes if o.plugin in mine):
            name, _ = plugin_name(outcome.plugin, recorder.switches.official, recorder.switches.details)
            took[name] = round(took.get(name, 0.0) + outcome.seconds * 1000, 3)
        recorder.event("hook_execution_complete", {
            **running.facts, **counts, "total_duration_ms": round(running.span.ms),
            "kernel.plugin_ms": msgspec.json.encode(took).decode()})
        failed = "a hook failed" if errors or cancelled else ""
        recorder.end(running.span, {**counts, "duration_ms": round(running.span.ms)}, error=failed)

    # -- configured handlers ---------------------------------------------------------------------------------------------------
    def _table(self) -> Any:
        return self.watch.session.plugin_state.get(CONFIGURED)

    def _handlers(self, event: Event) -> list[Any]:
        """The configured handlers whose matcher covers the event."""
        table = self._table()
        if table is None:
            return []
        values = table.values(event)
        return [h for h in table.handlers.get(event.event_name, ()) if h.matcher(values)]

    def _all(self) -> list[Any]:
        table = self._table()
        return [h for handlers in table.handlers.values() for h in handlers] if table is not None else []

    def _listen(self) -> None:
        """Hear of each handler that has run."""
        table = self._table()
        if table is None or not table.handlers or self._heard is table.running:
            return
        self._heard = table.running
        table.running.listeners.append(self._handled)

    def _handled(self, done: Any) -> None:
        for running in self._running:
            if running.event is done.event:
                running.done.append(done)

    def _managed_only(self) -> bool:
        return self.watch.session.settings.managed("allowManagedHooksOnly") is True


def event_hook(event: Event) -> str:
    """``PreToolUse`` -> ``pre_tool_use``."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in event.event_name).lstrip("_")


def _public(event: Event) -> str:
    """The name without what users named."""
    if type(event).matcher == "tool_name":
        return f"{event.event_name}:{tool_name(str(event.match_value or ''), details=False)}"
    plain = ("source", "trigger", "reason", "load_reason", "notification_type", "error")
    return event.hook_name if type(event).matcher in plain else event.event_name


def _blocks(outcome: Outcome) -> bool:
    answer = outcome.answer
    if answer is None:
        return False
    permission = getattr(answer, "permission", None)
    return (not answer.continue_ or answer.decision == "block" or getattr(answer, "permission_decision", None) == "deny"
            or getattr(permission, "behavior", None) == "deny")


def _refuses_call(outcomes: list[Outcome]) -> bool:
    """Whether the ``PreToolUse`` hooks end a call: one says so, or a gate is broken."""
    return any(_blocks(o) or o.error is not None for o in outcomes)


