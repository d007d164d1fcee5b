"""What every event is (hooks contract, section 10)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import Struct

PermissionMode = Literal["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"]


class Event(Struct, kw_only=True, omit_defaults=True, tag_field="hook_event_name"):
    """What every event carries.

    ``cwd`` follows ``cd``; ``transcript_path`` names the transcript, which may lag. ``agent_id`` is set inside
    a subagent only. ``effort`` is ``{"level": ...}``.
    """

    session_id: str
    transcript_path: str
    cwd: str
    prompt_id: str | None = None
    permission_mode: PermissionMode | None = None
    effort: dict[str, str] | None = None
    agent_id: str | None = None
    agent_type: str | None = None

    matcher: ClassVar[str | None] = None
    gate: ClassVar[bool] = False
    can_block: ClassVar[bool] = False
    ours: ClassVar[bool] = False
    carries_mode: ClassVar[bool] = False
    carries_effort: ClassVar[bool] = False

    @property
    def event_name(self) -> str:
        """The wire name, for example ``PreToolUse``."""
        return type(self).__name__

    @property
    def match_value(self) -> str | None:
        """What a matcher is tested against (section 4.3); ``None`` where the event always fires."""
        return str(getattr(self, self.matcher) or "") if self.matcher else None

    @property
    def hook_name(self) -> str:
        """``PreToolUse:Bash``, or the bare event name where there is no match value."""
        value = self.match_value
        return f"{self.event_name}:{value}" if value else self.event_name


class Ending(Event):
    """The common fields of the events at the end of a response."""

    stop_hook_active: bool
    last_assistant_message: str | None = None
    background_tasks: list[dict[str, Any]] | None = None
    session_crons: list[dict[str, Any]] | None = None
    carries_mode = True
    carries_effort = True
