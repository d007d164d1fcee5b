"""The end of a turn, compaction, elicitation, a change of model."""

from __future__ import annotations

from typing import Any, Literal

from kernel.answers import Answer, ContextAnswer
from kernel.events.event import Ending, Event


class Stop(Ending, tag=True):
    """The main agent finished responding. ``decision="block"`` or context makes it go on, within a cap."""

    can_block = True


class StopResult(ContextAnswer):
    event = "Stop"


class StopFailure(Event, tag=True):
    """The turn ended in an API error; fires instead of ``Stop``. Observation only."""

    error: str
    error_details: str | None = None
    last_assistant_message: str | None = None
    matcher = "error"


class StopFailureResult(Answer):
    event = "StopFailure"


class PreCompact(Event, tag=True):
    """A compaction is about to happen. ``decision="block"`` prevents it."""

    trigger: Literal["manual", "auto"]
    custom_instructions: str | None
    matcher = "trigger"
    can_block = True


class PreCompactResult(Answer):
    event = "PreCompact"


class PostCompact(Event, tag=True):
    """A compaction happened. Observation only."""

    trigger: Literal["manual", "auto"]
    compact_summary: str
    matcher = "trigger"


class PostCompactResult(Answer):
    event = "PostCompact"


class Elicitation(Event, tag=True):
    """An MCP server asks the person for input. ``action`` answers without a dialog."""

    mcp_server_name: str
    message: str
    mode: Literal["form", "url"] | None = None
    url: str | None = None
    elicitation_id: str | None = None
    requested_schema: dict[str, Any] | None = None
    matcher = "mcp_server_name"
    carries_mode = True
    can_block = True


class _ElicitationAnswer(Answer):
    """The common fields of both elicitation events. ``content`` counts with ``accept`` only."""

    action: Literal["accept", "decline", "cancel"] | None = None
    content: dict[str, Any] | None = None


class ElicitationHookResult(_ElicitationAnswer):
    """The answer to ``Elicitation`` (``ElicitationResult`` is an event of its own)."""

    event = "Elicitation"


class ElicitationResult(Event, tag=True):
    """The person answered an elicitation; the server has not seen it yet. ``action`` and ``content`` override."""

    mcp_server_name: str
    action: Literal["accept", "decline", "cancel"]
    mode: Literal["form", "url"] | None = None
    elicitation_id: str | None = None
    content: dict[str, Any] | None = None
    matcher = "mcp_server_name"
    carries_mode = True
    can_block = True


class ElicitationResultResult(_ElicitationAnswer):
    event = "ElicitationResult"


class _ModelSwitch(Event):
    """The common fields of both events about a change of model (after the contract's baseline)."""

    from_model: str
    to_model: str
    requested_model: str | None = None
    source: str | None = None
    context_tokens: float | None = None
    prompt_cache_warm: bool | None = None
    cache_ttl: str | None = None
    estimated_cache_write_usd: float | None = None
    pricing: str | None = None
    matcher = "to_model"


class PreModelSwitch(_ModelSwitch, tag=True):
    """The session is about to change its model."""

    gate = True
    can_block = True


class PreModelSwitchResult(Answer):
    event = "PreModelSwitch"
    permission_decision: Literal["allow", "deny", "ask"] | None = None
    permission_decision_reason: str | None = None


class PostModelSwitch(_ModelSwitch, tag=True):
    """The session changed its model."""


class PostModelSwitchResult(ContextAnswer):
    event = "PostModelSwitch"
