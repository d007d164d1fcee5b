"""``kernel hooks test EVENT``: raise one event for real, outside of any conversation, and show what comes of it.

The handlers that match are run as in a session, in-process hooks of installed plugins answer too, and the kernel merges. No model
is asked, so handlers of type ``prompt`` and ``agent`` are left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from kernel import (
    Event,
    Harness,
    Merged,
    ModelError,
    ModelInfo,
    ModelProvider,
    ModelRequest,
    Options,
    Output,
    Sandbox,
    Session,
    StreamEvent,
    SystemMessage,
)
from kernel_command_hooks.handlers import Handler
from kernel_command_hooks.hooks import STATE, Hooks
from kernel_command_hooks.payloads import build
from kernel_command_hooks.run_command import drop_env_file
from kernel_command_hooks.running import Handled
from kernel_command_hooks.trace import answers_of, decisions, how_it_ended, run_of

ASKS_A_MODEL = ("prompt", "agent")


class NoModel:
    """Serves every model and answers nothing."""

    name = "none"

    def resolve(self, model: str) -> ModelInfo | None:
        return ModelInfo(id=model)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        raise ModelError("kernel hooks test asks no model", kind="not_asked")
        yield {}  # makes it a generator

    async def aclose(self) -> None:
        pass


class DryHarness(Harness):
    """The installed plugins and the settings of the folder, without a model and without a sandbox (hooks run outside of it)."""

    def choose_model(self, restored: str | None = None) -> tuple[ModelProvider, ModelInfo]:
        return NoModel(), ModelInfo(id="none")

    def open_sandbox(self, session: Session) -> Sandbox | None:
        return None


async def try_event(options: Options, name: str, tool: str | None, given: dict[str, Any] | None) -> dict[str, Any]:
    """Raise the event and report: ``input``, ``handlers`` as configured, ``answers``, ``merged``, ``told``, ``problems``."""
    harness = DryHarness(options)
    told: list[str] = []

    def take(message: Output) -> None:
        if isinstance(message, SystemMessage) and message.subtype == "informational":
            told.append(str(message.data["content"]))

    session = harness.open(take)
    event = build(session, name, tool, given)
    hooks = session.plugin_state[STATE] = Hooks(session)
    handled: list[Handled] = []
    hooks.refresh()
    configured = hooks.handlers.get(name, [])
    hooks.handlers[name] = [h for h in configured if h.spec.type not in ASKS_A_MODEL]
    hooks.running.listeners.append(handled.append)
    seen: list[tuple[list[Any], Merged]] = []
    harness.trace_sink = lambda session, event, outcomes, merged: seen.append((outcomes, merged))
    await session.fire(event)
    await hooks.running.background.settle()
    drop_env_file(session)
    await session.close()
    outcomes, merged = seen[0]
    return {"event": event.hook_name, "input": msgspec.to_builtins(event),
            "handlers": [_row(handler, handled, hooks, event) for handler in configured],
            "answers": answers_of(outcomes), "merged": decisions(merged), "told": told, "problems": list(harness.announced)}


def _row(handler: Handler, handled: list[Handled], hooks: Hooks, event: Event) -> dict[str, Any]:
    """What became of one configured handler of the event."""
    for done in handled:
        if done.handler is handler:
            more = {"stdout": done.ran.stdout, "stderr": done.ran.stderr, "background": not done.waited}
            return {**run_of(done), **{name: value for name, value in more.items() if value}}
    if not handler.matcher(hooks.values(event)):
        why = f"its matcher {handler.matcher.text!r} does not cover {event.match_value!r}"
    elif handler.spec.type in ASKS_A_MODEL:
        why = "no model is asked here"
    elif any(done.handler.identity == handler.identity for done in handled):
        why = "the same handler stands elsewhere and ran once"
    else:
        why = f"its rule {handler.spec.rule!r} does not cover the call"
    return {"label": handler.label, "where": handler.where, "type": handler.spec.type, "not_run": why}


def as_text(report: dict[str, Any]) -> str:
    lines = [report["event"]]
    for row in report["handlers"]:
        if "not_run" in row:
            lines.append(f"  {row['label']}  ({row['where']}): not run, {row['not_run']}")
            continue
        lines.append(f"  {row['label']}  ({row['where']}): {how_it_ended(row)}, {row['ms']:.1f} ms")
        lines += [f"    {stream}: {line}" for stream in ("stdout", "stderr") for line in row.get(stream, "").splitlines()]
    lines += [f"  answer of {row['source']}: {msgspec.json.encode(row['answer']).decode()}" for row in report["answers"]]
    lines.append("decision: " + (msgspec.json.encode(report["merged"]).decode() if report["merged"] else "none, nobody objects"))
    lines += [f"told to the person: {text}" for text in report["told"]]
    lines += [f"problem: {text}" for text in report["problems"]]
    return "\n".join(lines)
