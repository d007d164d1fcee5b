"""One tool call from gate to gate, and the batch."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import field

from kernel.answers import Answer, ContextAnswer, Decision
from kernel.events.event import Event


class PreToolUse(Event, tag=True):
    """A valid tool call is about to meet the permission rules, in every mode, also inside subagents.

    deny > defer > ask > allow; silence approves nothing. An implementation that raises or times out denies, and is named in
    the reason.
    """

    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str
    matcher = "tool_name"
    carries_mode = True
    carries_effort = True
    gate = True
    can_block = True


class PreToolUseResult(ContextAnswer):
    """``updated_input`` replaces the whole input; silence approves nothing (section 13)."""

    event = "PreToolUse"
    permission_decision: Literal["allow", "deny", "ask", "defer"] | None = None
    permission_decision_reason: str | None = None
    updated_input: dict[str, Any] | None = None


class PermissionRequest(Event, tag=True):
    """A question is about to be asked, or a call refused because nobody can be asked. ``permission`` answers it."""

    tool_name: str
    tool_input: dict[str, Any]
    permission_suggestions: list[dict[str, Any]] | None = None
    matcher = "tool_name"
    carries_mode = True
    carries_effort = True
    gate = True


class PermissionRequestResult(Answer):
    """``permission`` is the wire's ``hookSpecificOutput.decision``: the only thing that grants or denies."""

    event = "PermissionRequest"
    permission: Decision | None = None


class PermissionDenied(Event, tag=True):
    """Auto mode refused a call. ``retry`` lets the model try again."""

    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str
    reason: str
    matcher = "tool_name"
    carries_mode = True
    carries_effort = True


class PermissionDeniedResult(Answer):
    event = "PermissionDenied"
    retry: bool | None = None


class PostToolUse(Event, tag=True):
    """A call succeeded. ``tool_input`` is what was executed, ``tool_response`` the structured result.

    An answer may add context, feed a reason back, or replace what the model sees.
    """

    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str
    tool_response: Any
    duration_ms: float | None = None
    matcher = "tool_name"
    carries_mode = True
    carries_effort = True


class PostToolUseResult(ContextAnswer):
    event = "PostToolUse"
    updated_tool_output: Any = None
    updated_mcp_tool_output: Any = field(default=None, name="updatedMCPToolOutput")
    classifier_context: str | None = None


class PostToolUseFailure(Event, tag=True):
    """A call that had started to run failed. Refused and malformed calls do not raise it.

    An answer may add context or feed a reason back.
    """

    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str
    error: str
    is_interrupt: bool | None = None
    duration_ms: float | None = None
    matcher = "tool_name"
    carries_mode = True
    carries_effort = True


class PostToolUseFailureResult(ContextAnswer):
    event = "PostToolUseFailure"


class PostToolBatch(Event, tag=True):
    """Every call of one assistant message has its result; the next request is not sent yet.

    ``tool_calls``: one ``{tool_name, tool_input, tool_use_id, tool_response}`` per call, in call order. ``decision="block"`` ends
    the turn before the next request.
    """

    tool_calls: list[dict[str, Any]]
    carries_mode = True
    carries_effort = True
    can_block = True


class PostToolBatchResult(ContextAnswer):
    event = "PostToolBatch"
