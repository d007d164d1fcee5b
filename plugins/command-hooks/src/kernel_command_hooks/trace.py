"""What hooks did in a session, line by line: who answered what, what it came to, how long it took.

Kept beside the transcript, in ``<session>/hook-trace.jsonl``, for the owner alone; only where the setting ``kernel.hooks.trace``
is true or the debug log is on. ``kernel hooks trace`` shows it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kernel import Answer, Event, Merged, Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel_command_hooks.hooks import Hooks
    from kernel_command_hooks.running import Handled

FILE = "hook-trace.jsonl"
SETTING = "kernel.hooks.trace"
TEXT_CHARS = 500
"""Of each text; a trace says who changed what, the whole of it stands in the transcript."""

Outcome = tuple[str, Answer | None, BaseException | None, float]
"""(plugin, answer, error, seconds), as the kernel hands them to ``Harness.trace_sink``."""


def start(hooks: Hooks) -> None:
    """Trace the session if that was asked for and there is a place for it."""
    session = hooks.session
    asked = session.settings.get(SETTING) is True
    if not asked and session.harness.debug_sink is None:
        return
    if not (session.transcript.kept and session.transcript.path):
        if asked:
            session.notice(f"{SETTING}: this session is not kept, so its hooks are not traced")
        return
    Trace(session, Path(session.transcript.path).with_suffix("") / FILE).attach(hooks)


class Sink:
    """What the kernel calls after every firing; passes it on to the trace of the session, and to whoever listened before."""

    def __init__(self, before: Callable[[Session, Event, list[Any], Merged], None] | None) -> None:
        self._before = before
        self.traces: dict[str, Trace] = {}

    def __call__(self, session: Session, event: Event, outcomes: list[Any], merged: Merged) -> None:
        if self._before is not None:
            self._before(session, event, outcomes, merged)
        trace = self.traces.get(session.id)
        if trace is not None:
            trace.fired(event, outcomes, merged)
            if event.event_name == "SessionEnd" and event.match_value not in ("clear", "resume"):
                del self.traces[session.id]


class Trace:
    """Writes one line per firing, and one per handler that nobody waited for."""

    def __init__(self, session: Session, path: Path) -> None:
        self._session = session
        self._path = path
        self._broken = False
        self._handlers: dict[int, list[dict[str, Any]]] = {}
        """Of firings that are not over, by the event's identity."""

    def attach(self, hooks: Hooks) -> None:
        harness = self._session.harness
        if not isinstance(harness.trace_sink, Sink):
            harness.trace_sink = Sink(harness.trace_sink)
        harness.trace_sink.traces[self._session.id] = self
        hooks.running.listeners.append(self.handled)

    def handled(self, done: Handled) -> None:
        row = run_of(done)
        if done.waited:
            self._handlers.setdefault(id(done.event), []).append(row)
        else:
            self._write({**self._head(done.event), "background": row})

    def fired(self, event: Event, outcomes: list[Outcome], merged: Merged) -> None:
        plugins: dict[str, float] = {}
        for plugin, _, _, seconds in outcomes:
            plugins[plugin] = round(max(plugins.get(plugin, 0.0), seconds * 1000), 3)
        errors = [{"plugin": plugin, "error": f"{type(error).__name__}: {error}"} for plugin, _, error, _ in outcomes
                  if error is not None]
        line = {**self._head(event), "plugins": plugins, "handlers": self._handlers.pop(id(event), []),
                "answers": answers_of(outcomes), "errors": errors, "merged": decisions(merged)}
        self._write({k: v for k, v in line.items() if v not in ([], {})})

    def _head(self, event: Event) -> dict[str, Any]:
        head = {"at": self._session.clock.timestamp(), "event": event.event_name, "name": event.hook_name,
                "prompt_id": event.prompt_id, "agent_id": event.agent_id, "tool_use_id": getattr(event, "tool_use_id", None)}
        return {k: v for k, v in head.items() if v is not None}

    def _write(self, line: dict[str, Any]) -> None:
        """One line in one write, so that a reader never sees half of it. A disk that is full ends the trace, not the session."""
        if self._broken:
            return
        try:
            data = msgspec.json.encode(shortened(line), enc_hook=str) + b"\n"
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
            try:
                os.write(fd, data)
            finally:
                os.close(fd)
        except (OSError, TypeError, ValueError) as error:
            self._broken = True
            self._session.notice(f"hooks are not traced any more: {self._path}: {error}")


def run_of(done: Handled) -> dict[str, Any]:
    """One run of one handler: who, how it ended, how long it took."""
    ran, reading = done.ran, done.reading
    row: dict[str, Any] = {
        "label": done.handler.label, "where": done.handler.where, "type": done.handler.spec.type,
        "ms": round(done.seconds * 1000, 3), "exit_code": None if ran.http else ran.code, "timed_out": ran.timed_out or None,
        "failed": (reading.failed if reading is not None else ran.error) or None}
    return {k: v for k, v in row.items() if v is not None}


def how_it_ended(row: dict[str, Any]) -> str:
    """The end of a run, in words."""
    return str(row.get("failed") or (f"exit code {row['exit_code']}" if "exit_code" in row else "answered"))


def answers_of(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    """Who said what."""
    return [{"plugin": plugin, "source": answer.source, "answer": answer.to_wire()} for plugin, answer, _, _ in outcomes
            if answer is not None]


def decisions(merged: Merged) -> dict[str, Any]:
    """What the answers come to, without what nobody said."""
    found: dict[str, Any] = msgspec.to_builtins(merged, enc_hook=str)
    return {key: value for key, value in found.items() if value not in (None, False, [], {})}


def shortened(value: Any) -> Any:
    """The same value with long texts cut and with characters that JSON cannot hold replaced."""
    if isinstance(value, str):
        clean = value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return clean if len(clean) <= TEXT_CHARS else f"{clean[:TEXT_CHARS]}... ({len(clean)} characters)"
    if isinstance(value, dict):
        return {k: shortened(v) for k, v in value.items()}
    return [shortened(v) for v in value] if isinstance(value, list | tuple) else value
