"""What steps come to, as JSON and back: streams of answers, results of tools, answers of hooks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from kernel import ANSWERS, ModelError, Outcome, ReadState, State, StreamError, StreamEvent, ToolError, ToolResult

_encoder = msgspec.json.Encoder(enc_hook=str)


def text(value: Any) -> str:
    """JSON; what JSON has not becomes text, and half a surrogate pair a mark."""
    try:
        return _encoder.encode(value).decode()
    except UnicodeEncodeError:
        import json

        return json.dumps(value, default=str)


def read(value: str) -> dict[str, Any]:
    """:raises ValueError: it is no JSON object."""
    try:
        found = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeError):
        import json

        found = json.loads(value)
    if not isinstance(found, dict):
        raise ValueError("expected a JSON object")
    return found


# -- a model's answer ------------------------------------------------------------------------------------------------------
_GROWS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def joined(events: list[StreamEvent]) -> list[StreamEvent]:
    """The same stream with neighbouring pieces of one text in one event, and without pings."""
    out: list[StreamEvent] = []
    for event in events:
        if event.get("type") == "ping":
            continue
        kind, delta = _piece(event)
        last_kind, before = _piece(out[-1]) if out else ("", {})
        if kind and kind == last_kind and out[-1].get("index") == event.get("index"):
            field = _GROWS[kind]
            out[-1] = {**event, "delta": {**delta, field: str(before.get(field) or "") + str(delta.get(field) or "")}}
        else:
            out.append(event)
    return out


def _piece(event: StreamEvent) -> tuple[str, dict[str, Any]]:
    """The type of a piece that only grows a text, and the piece."""
    delta = event.get("delta")
    kind = str(delta.get("type")) if isinstance(delta, dict) else ""
    return (kind, delta) if isinstance(delta, dict) and kind in _GROWS else ("", {})


def failure(error: ModelError) -> dict[str, Any]:
    return {"message": error.message, "kind": error.kind, "status": error.status, "stream": isinstance(error, StreamError)}


def failed(wire: dict[str, Any]) -> ModelError:
    kind = StreamError if wire.get("stream") else ModelError
    return kind(str(wire["message"]), kind=wire["kind"], status=wire["status"])


# -- a tool's result -------------------------------------------------------------------------------------------------------
_FIELDS = ("content", "status", "structured", "error_code", "retryable", "truncated", "evidence_ids", "new_messages",
           "spill_path")


def result_wire(result: ToolResult, state: State) -> dict[str, Any]:
    """A result; of its context modifier what it makes of the state that there is now."""
    wire: dict[str, Any] = {name: getattr(result, name) for name in _FIELDS}
    if result.context_modifier is not None:
        with suppress(Exception):  # of the tool's; the kernel says it
            now = msgspec.to_builtins(state)
            after = msgspec.to_builtins(result.context_modifier(state))
            wire["state"] = {name: value for name, value in after.items() if value != now[name]}
    return wire


def result_of(wire: dict[str, Any]) -> ToolResult:
    values = {name: wire[name] for name in _FIELDS}
    values |= {"evidence_ids": tuple(values["evidence_ids"]), "new_messages": tuple(values["new_messages"])}
    return ToolResult(**values, context_modifier=_modifier(wire["state"]) if wire.get("state") else None)


def _modifier(changes: dict[str, Any]) -> Callable[[State], State]:
    if "grants" in changes:
        changes = {**changes, "grants": tuple(changes["grants"])}
    return lambda state: msgspec.structs.replace(state, **changes)


def state_of(wire: dict[str, Any]) -> State:
    return msgspec.convert(wire, State)


def raised(error: Exception) -> dict[str, Any]:
    """What a tool raised; an expected failure with its code."""
    if isinstance(error, ToolError):
        return {"tool_error": error.code, "text": str(error), "retryable": error.retryable, "structured": error.structured}
    return {"type": type(error).__name__, "text": str(error)}


def raise_again(wire: dict[str, Any]) -> Exception:
    if "tool_error" in wire:
        return ToolError(wire["tool_error"], wire["text"], retryable=wire["retryable"], structured=wire["structured"])
    made: Exception = type(str(wire["type"]), (Exception,), {})(wire["text"])
    return made


def files_wire(before: dict[str, ReadState], after: dict[str, ReadState]) -> dict[str, Any]:
    """What a call has seen of files."""
    return {path: msgspec.to_builtins(seen) for path, seen in after.items() if before.get(path) != seen}


def files_of(wire: dict[str, Any]) -> dict[str, ReadState]:
    return msgspec.convert(wire, dict[str, ReadState])


# -- answers of hooks ------------------------------------------------------------------------------------------------------
def outcomes_wire(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for plugin, answer, error, seconds in outcomes:
        wire: dict[str, Any] = {"plugin": plugin, "seconds": seconds}
        if error is not None:
            wire["error"] = {"type": type(error).__name__, "text": str(error)}
        if answer is not None:
            wire |= {"answer": answer.to_wire(), "source": answer.source, "rank": answer.rank}
        found.append(wire)
    return found


def outcomes_of(event: str, wires: list[dict[str, Any]]) -> list[Outcome]:
    found: list[Outcome] = []
    for wire in wires:
        answer = None
        if "answer" in wire:
            answer = ANSWERS[event].from_wire(wire["answer"])
            answer.source, answer.rank = wire["source"], wire["rank"]
        error = raise_again(wire["error"]) if "error" in wire else None
        found.append(Outcome(wire["plugin"], answer, error, wire["seconds"]))
    return found
