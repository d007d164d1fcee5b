"""What only command hooks need to know about each event, in one table (hooks contract, sections 6.1, 8 and 18).

Everything else about an event stands on its class: the field a matcher is tested against, and whether it is a gate.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Class = Literal["standard", "partial", "discarded", "worktree"]
"""How a handler's output is read. ``standard``: valid JSON decides on every exit code but 2. ``partial``: only the listed
fields count and nothing is announced. ``discarded``: nothing counts. ``worktree``: success and the path decide."""

Exit2 = Literal["deny", "block", "decline", "notice", "debug", "ignored"]
"""What exit code 2 comes to. ``deny``, ``block``, ``decline``: the event's refusal, stderr is the reason. ``notice``: cannot
block, stderr goes to the person. ``debug``: stderr goes to the debug log. ``ignored``: stderr is dropped."""

ALL = ("command", "http", "mcp_tool", "prompt", "agent")
OUTSIDE = ("command", "http", "mcp_tool")
LOCAL = ("command", "mcp_tool")

TIMEOUT_S = 600.0
MODEL_TIMEOUTS_S = {"prompt": 30.0, "agent": 60.0}
SESSION_END_S = 1.5
"""What all SessionEnd handlers share; raised by the longest timeout of a SessionEnd handler in a settings file ..."""
SESSION_END_CAP_S = 60.0
"""... up to this, or set by ``CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS``."""


class Facts(Struct, frozen=True):
    """One row.

    ``honours``: the fields of an answer that count, by their Python names; all others are put back to their defaults
    (``terminal_sequence`` and fields that are ours always count; ``"*"``: all of them). ``timeout``: default seconds of
    command, http and mcp_tool handlers.
    ``background``: nothing waits for the handlers. ``rules``: the handler field ``if`` is evaluated. ``narrow``: the narrow
    class of exact matchers. ``plain``: plain stdout is context for the model.
    """

    output: Class
    exit2: Exit2
    types: tuple[str, ...]
    honours: frozenset[str]
    timeout: float = TIMEOUT_S
    background: bool = False
    rules: bool = False
    narrow: bool = False
    plain: bool = False
    env_file: bool = False

    def default_timeout(self, type: str) -> float:
        """Seconds that a handler gets which names no timeout of its own."""
        return MODEL_TIMEOUTS_S.get(type, self.timeout)

    @property
    def refuses(self) -> bool:
        """Whether exit code 2 refuses something."""
        return self.exit2 in ("deny", "block", "decline")


def _fields(*names: str) -> frozenset[str]:
    return frozenset(" ".join(names).split())


_STOP = "continue_ stop_reason system_message"
_BLOCK = "decision reason"
_CONTEXT = "additional_context"
_NOTHING = _fields()

FACTS: dict[str, Facts] = {
    # -- the session
    "SessionStart": Facts("standard", "notice", LOCAL, _fields(
        "system_message", _CONTEXT, "initial_user_message session_title watch_paths reload_skills"), plain=True, env_file=True),
    "Setup": Facts("standard", "notice", LOCAL, _fields("system_message", _CONTEXT), env_file=True),
    "SessionEnd": Facts("discarded", "notice", OUTSIDE, _NOTHING, timeout=SESSION_END_S),
    "InstructionsLoaded": Facts("discarded", "ignored", OUTSIDE, _NOTHING, background=True),
    # -- the prompt
    "UserPromptSubmit": Facts("standard", "block", ALL, _fields(
        _STOP, _BLOCK, _CONTEXT, "session_title suppress_original_prompt"), timeout=30.0, plain=True),
    "UserPromptExpansion": Facts("standard", "block", ALL, _fields(_STOP, _BLOCK, _CONTEXT), plain=True),
    "MessageDisplay": Facts("partial", "debug", OUTSIDE, _fields("display_content"), timeout=10.0),
    # -- the tool call
    "PreToolUse": Facts("standard", "deny", ALL, _fields(
        _STOP, _BLOCK, _CONTEXT, "permission_decision permission_decision_reason updated_input"), rules=True),
    "PermissionRequest": Facts("standard", "ignored", ALL, _fields(_STOP, "permission"), rules=True),
    "PermissionDenied": Facts("partial", "ignored", ALL, _fields("retry"), rules=True),
    "PostToolUse": Facts("standard", "block", ALL, _fields(
        _STOP, _BLOCK, _CONTEXT, "updated_tool_output updated_mcp_tool_output classifier_context"), rules=True),
    "PostToolUseFailure": Facts("standard", "block", ALL, _fields(_STOP, _BLOCK, _CONTEXT), rules=True),
    "PostToolBatch": Facts("standard", "block", ALL, _fields(_STOP, _BLOCK, _CONTEXT)),
    # -- agents and tasks
    "SubagentStart": Facts("standard", "notice", OUTSIDE, _fields("system_message", _CONTEXT)),
    "SubagentStop": Facts("standard", "block", ALL, _fields(_STOP, _BLOCK, _CONTEXT)),
    "TaskCreated": Facts("standard", "block", ALL, _fields("system_message", _BLOCK)),
    "TaskCompleted": Facts("standard", "block", ALL, _fields(_STOP, _BLOCK)),
    "TeammateIdle": Facts("standard", "block", ALL, _fields(_STOP, _BLOCK)),
    "WorktreeCreate": Facts("worktree", "block", OUTSIDE, _fields("worktree_path")),
    "WorktreeRemove": Facts("discarded", "debug", OUTSIDE, _NOTHING),
    # -- the end of a turn
    "Stop": Facts("standard", "block", ALL, _fields(_STOP, _BLOCK, _CONTEXT)),
    "StopFailure": Facts("discarded", "ignored", OUTSIDE, _NOTHING, narrow=True),
    # -- the surroundings
    "Notification": Facts("partial", "ignored", OUTSIDE, _NOTHING, background=True),
    "ConfigChange": Facts("partial", "block", OUTSIDE, _fields("decision")),
    "CwdChanged": Facts("partial", "notice", OUTSIDE, _fields("watch_paths system_message"), env_file=True),
    "DirectoryAdded": Facts("partial", "debug", OUTSIDE, _fields("system_message"), background=True),
    "FileChanged": Facts("partial", "notice", OUTSIDE, _fields("watch_paths system_message"), narrow=True, env_file=True),
    # -- compaction, elicitation, models
    "PreCompact": Facts("partial", "block", OUTSIDE, _fields(_BLOCK)),
    "PostCompact": Facts("partial", "notice", OUTSIDE, _NOTHING),
    "Elicitation": Facts("partial", "decline", OUTSIDE, _fields("action content")),
    "ElicitationResult": Facts("partial", "decline", OUTSIDE, _fields("action content")),
    "PreModelSwitch": Facts("standard", "block", OUTSIDE, _fields(
        _STOP, _BLOCK, "permission_decision permission_decision_reason"), timeout=30.0),
    "PostModelSwitch": Facts("standard", "notice", OUTSIDE, _fields("system_message", _CONTEXT), timeout=30.0,
                             background=True, plain=True),
}

UNNAMED = Facts("standard", "notice", ALL, frozenset({"*"}))
"""What holds for an event that the table does not name: valid JSON decides, every field counts, exit code 2 is a notice."""


def row(event: str) -> Facts:
    """The row of an event."""
    return FACTS.get(event, UNNAMED)


NEEDS_RESULT = frozenset(["WorktreeCreate", "Elicitation", "ElicitationResult", "MessageDisplay"])
"""Events whose result is needed: ``async`` is ignored there, with a warning (section 7, rule 9)."""

ALWAYS_STREAMED = frozenset(["SessionStart", "Setup"])
"""Events whose handlers are always reported on the stream (section 15)."""

NEVER_STARTED = frozenset(["Notification", "SessionEnd", "PreCompact", "PostCompact"])
"""Events whose handlers never send ``hook_started``."""
