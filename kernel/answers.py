"""One result model per lifecycle event: what a hook may answer (hooks contract, section 11).

In Python all fields of an answer are flat and in snake case: ``PreToolUseResult(permission_decision="deny",
permission_decision_reason="not on main")``. On the wire the universal fields stand at the root and the event's own
fields under ``hookSpecificOutput``; ``to_wire`` and ``from_wire`` translate and check.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import Struct, field

from kernel.events import EVENTS


class Decision(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """The answer to a permission question (hooks contract, 13.5).

    ``updated_input`` and ``updated_permissions`` count with ``allow``, ``message`` and ``interrupt`` with ``deny``.
    """

    behavior: Literal["allow", "deny"]
    updated_input: dict[str, Any] | None = None
    updated_permissions: list[dict[str, Any]] | None = None
    message: str | None = None
    interrupt: bool = False


class Answer(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """The universal fields (section 11.2). ``source`` and ``rank`` are the host's and never on the wire.

    ``source`` labels the handler in messages and traces; ``rank`` is the order of completion among the handlers of
    one plugin (a later rewrite wins, section 12.2).
    """

    continue_: bool = field(default=True, name="continue")
    stop_reason: str | None = None
    suppress_output: bool = False
    system_message: str | None = None
    terminal_sequence: str | None = None
    decision: Literal["approve", "block"] | None = None
    reason: str | None = None
    source: str = ""
    rank: int = 0

    event: ClassVar[str] = ""

    @classmethod
    def from_wire(cls, value: Any) -> Answer:
        """The answer from a handler's JSON object.

        :raises ValueError: the object does not fit the event's output schema; the text names the path.
        """
        try:
            wire = msgspec.convert(value, _wire_model(cls))
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None
        specific = getattr(wire, "hook_specific_output", None)
        values = {name: getattr(wire, name) for name in _UNIVERSAL}
        if specific is not None:
            values |= {name: getattr(specific, name) for name in specific_fields(cls)}
        return cls(**values)

    def to_wire(self) -> dict[str, Any]:
        """The documented JSON object, without defaults."""
        flat = msgspec.to_builtins(self)
        own = {f.encode_name for f in msgspec.structs.fields(type(self)) if f.name in specific_fields(type(self))}
        root = {k: v for k, v in flat.items() if k not in own and k not in ("source", "rank")}
        specific = {_UNRENAMED.get(k, k): v for k, v in flat.items() if k in own}
        if specific:
            root["hookSpecificOutput"] = {"hookEventName": self.event, **specific}
        return root


_HOST = ("source", "rank")
_UNIVERSAL = tuple(f.name for f in msgspec.structs.fields(Answer) if f.name not in _HOST)
# Answer.decision is the root's; a permission request's own ``decision`` object needs another name in Python.
_UNRENAMED = {"permission": "decision"}


@cache
def specific_fields(cls: type[Answer]) -> frozenset[str]:
    """The Python names of the fields that stand under ``hookSpecificOutput``."""
    return frozenset(f.name for f in msgspec.structs.fields(cls)) - set(_UNIVERSAL) - set(_HOST)


@cache
def _wire_model(cls: type[Answer]) -> type[Struct]:
    """The nested model that the wire object is checked against. Unknown keys are ignored at every level."""
    optional: Any = msgspec.UNSET
    root: list[Any] = []
    for f in msgspec.structs.fields(Answer):
        if f.name not in _HOST:
            root.append((f.name, f.type, field(default=f.default, name=f.encode_name)))
    own = [f for f in msgspec.structs.fields(cls) if f.name in specific_fields(cls)]
    event_name: Any = (Literal[cls.event],)[0]
    if own:
        inner = msgspec.defstruct(f"{cls.event}Output", [
            ("hook_event_name", event_name, field(name="hookEventName")),
            *((f.name, f.type, field(default=f.default, name=_UNRENAMED.get(f.encode_name, f.encode_name))) for f in own),
        ], kw_only=True)
        root.append(("hook_specific_output", inner | None, field(default=None, name="hookSpecificOutput")))
    else:
        # The event has no specific output: any value is a schema failure (hook-events.json, output).
        root.append(("hook_specific_output", msgspec.UnsetType, field(default=optional, name="hookSpecificOutput")))
    return msgspec.defstruct(f"{cls.event}Wire", root, kw_only=True)


class ContextAnswer(Answer):
    """An answer that may add text to the model's context, read with the next request only (section 11.3)."""

    additional_context: str | None = None


class SessionStartResult(ContextAnswer):
    event = "SessionStart"
    initial_user_message: str | None = None
    session_title: str | None = None
    watch_paths: list[str] | None = None
    reload_skills: bool | None = None


class SetupResult(ContextAnswer):
    event = "Setup"


class SessionEndResult(Answer):
    event = "SessionEnd"


class InstructionsLoadedResult(Answer):
    event = "InstructionsLoaded"


class UserPromptSubmitResult(ContextAnswer):
    event = "UserPromptSubmit"
    session_title: str | None = None
    suppress_original_prompt: bool | None = None


class UserPromptExpansionResult(ContextAnswer):
    event = "UserPromptExpansion"


class MessageDisplayResult(Answer):
    event = "MessageDisplay"
    display_content: str | None = None


class PreToolUseResult(ContextAnswer):
    """``updated_input`` replaces the whole input; silence approves nothing (section 13)."""

    event = "PreToolUse"
    permission_decision: Literal["allow", "deny", "ask", "defer"] | None = None
    permission_decision_reason: str | None = None
    updated_input: dict[str, Any] | None = None


class PermissionRequestResult(Answer):
    """``permission`` is the wire's ``hookSpecificOutput.decision``: the only thing that grants or denies."""

    event = "PermissionRequest"
    permission: Decision | None = None


class PermissionDeniedResult(Answer):
    event = "PermissionDenied"
    retry: bool | None = None


class PostToolUseResult(ContextAnswer):
    event = "PostToolUse"
    updated_tool_output: Any = None
    updated_mcp_tool_output: Any = field(default=None, name="updatedMCPToolOutput")
    classifier_context: str | None = None


class PostToolUseFailureResult(ContextAnswer):
    event = "PostToolUseFailure"


class PostToolBatchResult(ContextAnswer):
    event = "PostToolBatch"


class SubagentStartResult(ContextAnswer):
    event = "SubagentStart"


class SubagentStopResult(ContextAnswer):
    event = "SubagentStop"


class TaskCreatedResult(Answer):
    event = "TaskCreated"


class TaskCompletedResult(Answer):
    event = "TaskCompleted"


class TeammateIdleResult(Answer):
    event = "TeammateIdle"


class StopResult(ContextAnswer):
    event = "Stop"


class StopFailureResult(Answer):
    event = "StopFailure"


class NotificationResult(ContextAnswer):
    """``additional_context`` is accepted by the schema and has no effect."""

    event = "Notification"


class ConfigChangeResult(Answer):
    event = "ConfigChange"


class CwdChangedResult(Answer):
    event = "CwdChanged"
    watch_paths: list[str] | None = None


class DirectoryAddedResult(Answer):
    event = "DirectoryAdded"


class FileChangedResult(Answer):
    event = "FileChanged"
    watch_paths: list[str] | None = None


class WorktreeCreateResult(Answer):
    event = "WorktreeCreate"
    worktree_path: str | None = None


class WorktreeRemoveResult(Answer):
    event = "WorktreeRemove"


class PreCompactResult(Answer):
    event = "PreCompact"


class PostCompactResult(Answer):
    event = "PostCompact"


class ElicitationAnswer(Answer):
    """The common fields of both elicitation events. ``content`` counts with ``accept`` only."""

    action: Literal["accept", "decline", "cancel"] | None = None
    content: dict[str, Any] | None = None


class ElicitationHookResult(ElicitationAnswer):
    """The answer to ``Elicitation`` (``ElicitationResult`` is an event of its own)."""

    event = "Elicitation"


class ElicitationResultResult(ElicitationAnswer):
    event = "ElicitationResult"


class PreModelSwitchResult(Answer):
    event = "PreModelSwitch"
    permission_decision: Literal["allow", "deny", "ask"] | None = None
    permission_decision_reason: str | None = None


class PostModelSwitchResult(ContextAnswer):
    event = "PostModelSwitch"


ANSWERS: dict[str, type[Answer]] = {
    cls.event: cls for cls in list(globals().values())
    if isinstance(cls, type) and issubclass(cls, Answer) and cls.event in EVENTS
}
"""The result model of every lifecycle event, by the event's wire name."""
