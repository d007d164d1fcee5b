"""kernel: a plugin-first microkernel for agent harnesses.

These are the public names. They are imported when they are first used, so that ``import kernel`` costs nothing.
A plugin imports them, its declared dependencies and itself; nothing else of the kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel.answers import (
        ANSWERS, Answer, ConfigChangeResult, CwdChangedResult, Decision, DirectoryAddedResult, ElicitationHookResult,
        ElicitationResultResult, FileChangedResult, InstructionsLoadedResult, MessageDisplayResult,
        NotificationResult, PermissionDeniedResult, PermissionRequestResult, PostCompactResult, PostModelSwitchResult,
        PostToolBatchResult, PostToolUseFailureResult, PostToolUseResult, PreCompactResult, PreModelSwitchResult,
        PreToolUseResult, SessionEndResult, SessionStartResult, SetupResult, StopFailureResult, StopResult,
        SubagentStartResult, SubagentStopResult, TaskCompletedResult, TaskCreatedResult, TeammateIdleResult,
        UserPromptExpansionResult, UserPromptSubmitResult, WorktreeCreateResult, WorktreeRemoveResult)
    from kernel.clock import Clock
    from kernel.errors import (
        DuplicateError, HistoryError, KernelError, LoadError, ManifestError, ModelError, PluginError, SessionError,
        SettingsError, StreamError, ToolError, UsageError)
    from kernel.events import (
        EVENTS, ConfigChange, CwdChanged, DirectoryAdded, Elicitation, ElicitationResult, Event, FileChanged,
        InstructionsLoaded, MessageDisplay, Notification, PermissionDenied, PermissionRequest, PostCompact,
        PostModelSwitch, PostToolBatch, PostToolUse, PostToolUseFailure, PreCompact, PreModelSwitch, PreToolUse,
        SessionEnd, SessionStart, Setup, Stop, StopFailure, SubagentStart, SubagentStop, TaskCompleted, TaskCreated,
        TeammateIdle, UserPromptExpansion, UserPromptSubmit, WorktreeCreate, WorktreeRemove)
    from kernel.frontend import Command, FrontEnd
    from kernel.harness import Harness
    from kernel.hookspecs import hookimpl
    from kernel.manifest import Manifest
    from kernel.merge import Merged, Text, merge
    from kernel.messages import Block, History, normalise, reminder, text_block, text_of
    from kernel.middleware import Middleware
    from kernel.models import ModelCaller, ModelInfo, ModelProvider, ModelRequest, Prices, Response, StreamEvent, Usage
    from kernel.options import Options
    from kernel.output import (
        AssistantMessage, Output, ResultMessage, StreamMessage, SystemMessage, ToolProgress, UserMessage,
        encode_output)
    from kernel.plugins import Plugin, PluginSet
    from kernel.policy import PermissionCall, Policy, Verdict
    from kernel.prompt import PromptPart
    from kernel.registry import Registry
    from kernel.session import Session
    from kernel.settings import Layer, Problem, Settings, config_dir, git_root
    from kernel.tools import ReadState, State, Tool, ToolContext, ToolResult, ToolRunner
    from kernel.transcript import Entry, Restored, Transcript, TranscriptStore

__version__ = "0.1.0"
CONTRACT = "2.1.240"
"""The version of the public contract that this release follows."""

_HOMES = {
    "answers": """
        ANSWERS Answer ConfigChangeResult CwdChangedResult Decision DirectoryAddedResult
        ElicitationHookResult ElicitationResultResult FileChangedResult InstructionsLoadedResult
        MessageDisplayResult NotificationResult PermissionDeniedResult PermissionRequestResult
        PostCompactResult PostModelSwitchResult PostToolBatchResult PostToolUseFailureResult
        PostToolUseResult PreCompactResult PreModelSwitchResult PreToolUseResult SessionEndResult
        SessionStartResult SetupResult StopFailureResult StopResult SubagentStartResult
        SubagentStopResult TaskCompletedResult TaskCreatedResult TeammateIdleResult
        UserPromptExpansionResult UserPromptSubmitResult WorktreeCreateResult WorktreeRemoveResult
    """,
    "clock": """
        Clock
    """,
    "errors": """
        DuplicateError HistoryError KernelError LoadError ManifestError ModelError PluginError
        SessionError SettingsError StreamError ToolError UsageError
    """,
    "events": """
        ConfigChange CwdChanged DirectoryAdded EVENTS Elicitation ElicitationResult Event
        FileChanged InstructionsLoaded MessageDisplay Notification PermissionDenied
        PermissionRequest PostCompact PostModelSwitch PostToolBatch PostToolUse PostToolUseFailure
        PreCompact PreModelSwitch PreToolUse SessionEnd SessionStart Setup Stop StopFailure
        SubagentStart SubagentStop TaskCompleted TaskCreated TeammateIdle UserPromptExpansion
        UserPromptSubmit WorktreeCreate WorktreeRemove
    """,
    "frontend": """
        Command FrontEnd
    """,
    "harness": """
        Harness
    """,
    "hookspecs": """
        hookimpl
    """,
    "manifest": """
        Manifest
    """,
    "merge": """
        Merged Text merge
    """,
    "messages": """
        Block History normalise reminder text_block text_of
    """,
    "middleware": """
        Middleware
    """,
    "models": """
        ModelCaller ModelInfo ModelProvider ModelRequest Prices Response StreamEvent Usage
    """,
    "options": """
        Options
    """,
    "output": """
        AssistantMessage Output ResultMessage StreamMessage SystemMessage ToolProgress UserMessage
        encode_output
    """,
    "plugins": """
        Plugin PluginSet
    """,
    "policy": """
        PermissionCall Policy Verdict
    """,
    "prompt": """
        PromptPart
    """,
    "registry": """
        Registry
    """,
    "session": """
        Session
    """,
    "settings": """
        Layer Problem Settings config_dir git_root
    """,
    "tools": """
        ReadState State Tool ToolContext ToolResult ToolRunner
    """,
    "transcript": """
        Entry Restored Transcript TranscriptStore
    """,
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = ["CONTRACT", "__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module 'kernel' has no attribute {name!r}")
    value = getattr(import_module(f"kernel.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
