"""One input model per lifecycle event (hooks contract, sections 10 and 18).

An event is what a hook is handed. Field names are the documented wire names; ``encode(event)`` gives the
documented flat JSON, ``hook_event_name`` included. The answer to an event is a model in ``answers.py``.

Class attributes say what the host needs to know about an event:

``matcher``: the field whose value a matcher is tested against; ``None`` where the event has no matcher.
``gate``: an implementation that raises or times out counts as a refusal (decision D5).
``carries_mode``, ``carries_effort``: the host adds ``permission_mode`` and ``effort`` (section 10).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import Struct
from msgspec.json import Encoder

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


# -- the session ------------------------------------------------------------------------------------------------
class SessionStart(Event, tag=True):
    """A session began, was resumed or forked, was cleared or compacted."""

    source: Literal["startup", "resume", "clear", "compact", "fork"]
    model: str | None = None
    session_title: str | None = None
    matcher = "source"


class Setup(Event, tag=True):
    """The launch asked for set-up (``--init``, ``--init-only``, ``--maintenance``)."""

    trigger: Literal["init", "maintenance"]
    matcher = "trigger"


class SessionEnd(Event, tag=True):
    """The session ends: normal exit, ``/clear``, SIGTERM in print mode."""

    reason: str
    matcher = "reason"


class InstructionsLoaded(Event, tag=True):
    """An instruction file entered the context."""

    file_path: str
    memory_type: Literal["User", "Project", "Local", "Managed"]
    load_reason: Literal["session_start", "nested_traversal", "path_glob_match", "include", "compact"]
    globs: list[str] | None = None
    trigger_file_path: str | None = None
    parent_file_path: str | None = None
    matcher = "load_reason"


# -- the prompt ---------------------------------------------------------------------------------------------------
class UserPromptSubmit(Event, tag=True):
    """A prompt was submitted; the model has not seen it yet."""

    prompt: str
    session_title: str | None = None
    carries_mode = True
    gate = True


class UserPromptExpansion(Event, tag=True):
    """A typed command is about to become a prompt."""

    expansion_type: Literal["slash_command", "mcp_prompt"]
    command_name: str
    command_args: str
    prompt: str
    command_source: str | None = None
    matcher = "command_name"
    carries_mode = True
    gate = True


class MessageDisplay(Event, tag=True):
    """Assistant text is about to be shown."""

    turn_id: str
    message_id: str
    index: int
    final: bool
    delta: str


# -- the tool call --------------------------------------------------------------------------------------------------
class PreToolUse(Event, tag=True):
    """A valid tool call is about to meet the permission rules, in every mode, also inside subagents."""

    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str
    matcher = "tool_name"
    carries_mode = True
    carries_effort = True
    gate = True


class PermissionRequest(Event, tag=True):
    """A question is about to be asked, or a call refused because nobody can be asked."""

    tool_name: str
    tool_input: dict[str, Any]
    permission_suggestions: list[dict[str, Any]] | None = None
    matcher = "tool_name"
    carries_mode = True
    carries_effort = True
    gate = True


class PermissionDenied(Event, tag=True):
    """Auto mode refused a call."""

    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str
    reason: str
    matcher = "tool_name"
    carries_mode = True
    carries_effort = True


class PostToolUse(Event, tag=True):
    """A tool call succeeded. ``tool_input`` is what was executed, ``tool_response`` the structured result."""

    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str
    tool_response: Any
    duration_ms: float | None = None
    matcher = "tool_name"
    carries_mode = True
    carries_effort = True


class PostToolUseFailure(Event, tag=True):
    """A tool that had started to run failed. Refused and malformed calls do not raise it."""

    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str
    error: str
    is_interrupt: bool | None = None
    duration_ms: float | None = None
    matcher = "tool_name"
    carries_mode = True
    carries_effort = True


class PostToolBatch(Event, tag=True):
    """Every call of one assistant message has its result; the next request is not sent yet.

    ``tool_calls``: one ``{tool_name, tool_input, tool_use_id, tool_response}`` per call, in call order.
    """

    tool_calls: list[dict[str, Any]]
    carries_mode = True
    carries_effort = True


# -- agents and tasks -------------------------------------------------------------------------------------------------
class SubagentStart(Event, tag=True):
    """A subagent starts."""

    matcher = "agent_type"


class Ending(Event):
    """The common fields of the events at the end of a response."""
    stop_hook_active: bool
    last_assistant_message: str | None = None
    background_tasks: list[dict[str, Any]] | None = None
    session_crons: list[dict[str, Any]] | None = None
    carries_mode = True
    carries_effort = True


class SubagentStop(Ending, tag=True, kw_only=True):
    """A subagent finished its response."""

    agent_transcript_path: str
    matcher = "agent_type"


class Task(Event):
    """The common fields of both task events."""
    task_id: str
    task_subject: str
    task_description: str | None = None
    teammate_name: str | None = None
    team_name: str | None = None
    carries_mode = True


class TaskCreated(Task, tag=True):
    """A task is being created."""


class TaskCompleted(Task, tag=True):
    """A task is about to be marked completed."""


class TeammateIdle(Event, tag=True):
    """A teammate is about to go idle."""
    teammate_name: str
    team_name: str | None = None
    carries_mode = True


# -- the end of a turn ------------------------------------------------------------------------------------------------
class Stop(Ending, tag=True):
    """The main agent finished responding."""


class StopFailure(Event, tag=True):
    """The turn ended in an API error; fires instead of ``Stop``."""

    error: str
    error_details: str | None = None
    last_assistant_message: str | None = None
    matcher = "error"


class Notification(Event, tag=True):
    """The host tells the person something."""

    message: str
    notification_type: str
    title: str | None = None
    matcher = "notification_type"


# -- the surroundings -------------------------------------------------------------------------------------------------
class ConfigChange(Event, tag=True):
    """A settings or skill file changed on disk."""

    source: Literal["user_settings", "project_settings", "local_settings", "policy_settings", "skills"]
    file_path: str | None = None
    matcher = "source"


class CwdChanged(Event, tag=True):
    """The working directory changed."""
    old_cwd: str
    new_cwd: str


class DirectoryAdded(Event, tag=True):
    """A working directory was added."""
    directory: str
    source: Literal["slash_command", "register_repo_root"]
    matcher = "source"


class FileChanged(Event, tag=True):
    """A watched file changed; the matcher is tested against its base name."""

    file_path: str
    event: Literal["change", "add", "unlink"]
    matcher = "file_path"

    @property
    def match_value(self) -> str | None:
        return self.file_path.replace("\\", "/").rsplit("/", 1)[-1]


class WorktreeCreate(Event, tag=True):
    """A worktree is to be created."""
    name: str


class WorktreeRemove(Event, tag=True):
    """A worktree is removed."""
    worktree_path: str


# -- compaction, elicitation, models ----------------------------------------------------------------------------------
class PreCompact(Event, tag=True):
    """A compaction is about to happen."""

    trigger: Literal["manual", "auto"]
    custom_instructions: str | None
    matcher = "trigger"


class PostCompact(Event, tag=True):
    """A compaction happened."""

    trigger: Literal["manual", "auto"]
    compact_summary: str
    matcher = "trigger"


class Elicitation(Event, tag=True):
    """An MCP server asks the person for input."""

    mcp_server_name: str
    message: str
    mode: Literal["form", "url"] | None = None
    url: str | None = None
    elicitation_id: str | None = None
    requested_schema: dict[str, Any] | None = None
    matcher = "mcp_server_name"
    carries_mode = True


class ElicitationResult(Event, tag=True):
    """The person answered an elicitation; the server has not seen it yet."""

    mcp_server_name: str
    action: Literal["accept", "decline", "cancel"]
    mode: Literal["form", "url"] | None = None
    elicitation_id: str | None = None
    content: dict[str, Any] | None = None
    matcher = "mcp_server_name"
    carries_mode = True


class ModelSwitch(Event):
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


class PreModelSwitch(ModelSwitch, tag=True):
    """The session is about to change its model."""

    gate = True


class PostModelSwitch(ModelSwitch, tag=True):
    """The session changed its model."""


EVENTS: dict[str, type[Event]] = {
    cls.__name__: cls for cls in list(globals().values())
    if isinstance(cls, type) and issubclass(cls, Event) and cls not in (Event, Ending, ModelSwitch, Task)
}
"""Every lifecycle event by wire name, in lifecycle order."""

encode = Encoder().encode
"""The documented flat JSON of an event, as UTF-8 bytes on one line."""


def snake(name: str) -> str:
    """``PreToolUse`` -> ``pre_tool_use``: the hook's name from the event's."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
