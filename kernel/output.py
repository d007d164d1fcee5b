"""What a run tells its front end: a stream of typed messages (headless contract, section 5).

The field names are the documented wire names; ``encode_output(message)`` gives the documented JSON. A front end shows them,
writes them or hands them to a program; it never looks inside the loop.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field

from kernel.models import Usage


class Output(Struct, kw_only=True, omit_defaults=True, tag_field="type"):
    """Base: every message names its session and has an id of its own."""

    uuid: str
    session_id: str



class AssistantMessage(Output, tag="assistant"):
    """A completed block of a model message; ``uuid`` is that of the transcript entry."""

    message: dict[str, Any]
    parent_tool_use_id: str | None
    error: str | None = None
    aborted: bool = False


class UserMessage(Output, tag="user"):
    """A tool result, a synthetic or a replayed user message."""

    message: dict[str, Any]
    parent_tool_use_id: str | None
    tool_use_result: Any = None
    is_synthetic: bool = field(default=False, name="isSynthetic")
    is_replay: bool = field(default=False, name="isReplay")
    origin: dict[str, Any] | None = None
    timestamp: str | None = None


class StreamMessage(Output, tag="stream_event"):
    """A raw event of the model's stream, when partial messages were asked for."""

    event: dict[str, Any]
    parent_tool_use_id: str | None
    ttft_ms: float | None = None


class ResultMessage(Output, tag="result", omit_defaults=False):
    """The end of a turn: exactly one per submitted prompt (headless contract, 5.5)."""

    subtype: str
    is_error: bool
    duration_ms: int
    duration_api_ms: int
    num_turns: int
    stop_reason: str | None
    total_cost_usd: float
    usage: Usage
    model_usage: dict[str, dict[str, Any]] = field(name="modelUsage")
    permission_denials: list[dict[str, Any]]
    terminal_reason: str
    result: str | msgspec.UnsetType = msgspec.UNSET
    errors: list[str] | msgspec.UnsetType = msgspec.UNSET
    api_error_status: int | msgspec.UnsetType | None = msgspec.UNSET
    structured_output: Any = msgspec.UNSET
    deferred_tool_use: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    origin: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    user_message_uuid: str | msgspec.UnsetType = msgspec.UNSET


class SystemMessage(Output, tag="system"):
    """Everything the host says for itself: ``init``, ``informational``, ``api_retry``, ``hook_started`` ...

    ``data`` holds the fields of the subtype and stands at the root on the wire.
    """

    subtype: str
    data: dict[str, Any]


class ConversationReset(Output, tag="conversation_reset"):
    """``/clear`` replaced the conversation. ``session_id`` is the old one's; all that follows has the new one."""

    new_conversation_id: str


class ToolProgress(Output, tag="tool_progress"):
    """A tool is still at work."""

    tool_use_id: str
    tool_name: str
    parent_tool_use_id: str | None
    elapsed_time_seconds: float
    heartbeat: bool = False
    data: dict[str, Any] | None = None


_encoder = msgspec.json.Encoder(enc_hook=str)


def to_wire(message: Output) -> dict[str, Any]:
    """The documented JSON object."""
    wire: dict[str, Any] = msgspec.to_builtins(message, enc_hook=str)
    if isinstance(message, SystemMessage):
        data = wire.pop("data")
        wire = {"type": "system", "subtype": message.subtype, **data, "uuid": message.uuid, "session_id": message.session_id}
    return wire


_LINE_ENDS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))


def encode_output(message: Output) -> bytes:
    """One line of JSON, without the line end. U+0085, U+2028 and U+2029 are escaped, so that every reader sees one line."""
    from kernel.messages import scrub

    value: Any = to_wire(message) if isinstance(message, SystemMessage) else message
    try:
        line = _encoder.encode(value)
    except UnicodeEncodeError:
        line = _encoder.encode(scrub(to_wire(message)))
    for raw, escape in _LINE_ENDS:
        if raw in line:
            line = line.replace(raw, escape)
    return line
