"""What steps are given and what they come to, as JSON and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from kernel import ANSWERS, ModelError, Outcome, ReadState, State, StreamError, ToolError, ToolResult, Verdict

if TYPE_CHECKING:
    from kernel import Event, ModelRequest, PermissionCall

_encoder = msgspec.json.Encoder(enc_hook=str)
PARTS = ("system", "tools")
"""Parts of a request that are the same from one to the next, and are kept once."""


def encode(value: Any) -> bytes:
    """Compact JSON. What JSON does not have becomes text, lone surrogates are replaced."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_scrubbed(msgspec.to_builtins(value, enc_hook=str)))


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_scrubbed(k): _scrubbed(v) for k, v in value.items()}
    return [_scrubbed(v) for v in value] if isinstance(value, list | tuple) else value


def request(asked: ModelRequest) -> dict[str, Any]:
    """The whole request; what a provider adds to it (keys, headers, marks for its cache) is its own affair."""
    return {"model": asked.model, "max_tokens": asked.max_tokens, "system": asked.system, "tools": asked.tools,
            "messages": asked.history.wire(), "tool_choice": asked.tool_choice, "thinking": asked.thinking,
            "effort": asked.effort, "betas": asked.betas, "extra": asked.extra}


def folded(whole: dict[str, Any], keep: Any) -> dict[str, Any]:
    """The request with digests in the place of what is kept beside it (``keep``: bytes -> digest)."""
    return {**whole, **{name: keep(encode(whole[name])) for name in PARTS},
            "messages": [keep(encode(message)) for message in whole["messages"]]}


def unfolded(told: dict[str, Any], blobs: dict[str, Raw]) -> dict[str, Any]:
    """The whole request again; a digest that is not there stays as it is."""
    def back(name: Any) -> Any:
        return msgspec.json.decode(blobs[name]) if name in blobs else name
    return {**told, **{name: back(told[name]) for name in PARTS}, "messages": [back(name) for name in told["messages"]]}


def event(fired: Event) -> dict[str, Any]:
    wire: dict[str, Any] = msgspec.to_builtins(fired, enc_hook=str)
    return wire


def call(asked: PermissionCall) -> dict[str, Any]:
    return {"tool": asked.tool.name, "input": asked.input, "cwd": asked.cwd, "mode": asked.mode, "hook": asked.hook,
            "hook_rewrote": asked.hook_rewrote, "agent_id": asked.agent_id}


# -- what they come to -----------------------------------------------------------------------------------------------------
def error(raised: BaseException) -> dict[str, Any]:
    told: dict[str, Any] = {"type": type(raised).__name__, "message": str(raised)}
    if isinstance(raised, ModelError):
        told |= {"model": {"kind": raised.kind, "status": raised.status, "retry_after": raised.retry_after,
                           "should_retry": raised.should_retry, "request_id": raised.request_id, "context": raised.context,
                           "hint": raised.hint}, "message": raised.message, "stream": isinstance(raised, StreamError)}
    elif isinstance(raised, ToolError):
        told |= {"tool": {"code": raised.code, "retryable": raised.retryable, "structured": raised.structured},
                 "message": raised.message}
    return told


def raised(told: dict[str, Any]) -> Exception:
    """The same failure again; one of a class that is not ours gets a class of that name."""
    if "model" in told:
        return (StreamError if told.get("stream") else ModelError)(told["message"], **told["model"])
    if "tool" in told:
        more = told["tool"]
        return ToolError(more["code"], told["message"], retryable=more["retryable"], structured=more["structured"])
    made: Exception = type(str(told["type"]), (Exception,), {})(told["message"])
    return made


def result(came: ToolResult, state: State) -> dict[str, Any]:
    """:param state: the session's, which a modifier of the result will change."""
    told: dict[str, Any] = {"content": came.content, "status": came.status, "structured": came.structured,
                            "error_code": came.error_code, "retryable": came.retryable, "truncated": came.truncated,
                            "evidence_ids": came.evidence_ids, "new_messages": came.new_messages, "spill_path": came.spill_path}
    if came.context_modifier is not None:
        try:
            after = msgspec.to_builtins(came.context_modifier(state))
            before = msgspec.to_builtins(state)
            told["state"] = {name: value for name, value in after.items() if before[name] != value}
        except Exception:  # the batch says so
            told["state"] = None
    return told


def tool_result(told: dict[str, Any]) -> ToolResult:
    changes = told.get("state", {})
    more: dict[str, Any] = {k: tuple(v) if k in ("evidence_ids", "new_messages") else v for k, v in told.items() if k != "state"}
    if changes:
        more["context_modifier"] = lambda state: msgspec.convert({**msgspec.to_builtins(state), **changes}, State)
    return ToolResult(**more)


def files(seen: dict[str, ReadState]) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(seen)
    return told


def seen(told: dict[str, Any]) -> dict[str, ReadState]:
    return msgspec.convert(told, dict[str, ReadState])


def outcomes(came: Iterable[Outcome]) -> list[dict[str, Any]]:
    told = []
    for one in came:
        row: dict[str, Any] = {"plugin": one.plugin}
        if one.answer is not None:
            row |= {"answer": one.answer.to_wire(), "source": one.answer.source, "rank": one.answer.rank}
        if one.error is not None:
            row["error"] = error(one.error)
        told.append(row)
    return told


def outcome(event_name: str, told: dict[str, Any]) -> Outcome:
    answer = None
    if "answer" in told:
        answer = ANSWERS[event_name].from_wire(told["answer"])
        answer.source, answer.rank = told["source"], told["rank"]
    return Outcome(told["plugin"], answer, raised(told["error"]) if "error" in told else None, 0.0)


def verdict(told: dict[str, Any]) -> Verdict:
    return msgspec.convert(told, Verdict)
