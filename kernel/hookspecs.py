"""Every hook, in the order of a session's life.

Three kinds, never mixed (decision D2).

*Registration* hooks (``register_*``) are synchronous and run once, when the kernel first needs what they bring. They
hand over objects: ``register(thing)`` keeps it under ``thing.name``.

*Lifecycle* hooks get one typed ``event``, and the ``session`` where they name it as a second argument. They may be
``def`` or ``async def`` and return the event's result model, a list of them, or ``None``. All implementations run,
side by side; nobody sees another's answer; ``merge.py`` says what the answers come to.

*Middleware* wraps a model request or a tool run: ``register_middleware``.

Which events a plugin implements stands in its manifest (``metadata.kernel.implements``), so that its code is
imported when one of them first fires and not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel import answers as a, events as e
    from kernel.compactor import Compactor
    from kernel.extension import Extension
    from kernel.frontend import Command, FrontEnd
    from kernel.middleware import Middleware
    from kernel.models import ModelProvider
    from kernel.policy import PolicyFactory
    from kernel.prompt import PromptPart
    from kernel.registry import Registry
    from kernel.sandbox import SandboxFactory
    from kernel.session import Session
    from kernel.tools import Tool
    from kernel.transcript import TranscriptStore

F = TypeVar("F", bound="Callable[..., Any]")

hookspec = pluggy.HookspecMarker("kernel")
hookimpl = pluggy.HookimplMarker("kernel")
"""Marks an implementation: ``@hookimpl`` above a function of the plugin's module."""


# == registration ===================================================================================================
@hookspec
def register_tools(register: Registry[Tool]) -> None:
    """Offer tools to the model. Names are those of ``provides.tools`` in the manifest."""


@hookspec
def register_models(register: Registry[ModelProvider]) -> None:
    """Offer model providers. Only the plugin of the provider that is chosen is loaded."""


@hookspec
def register_policies(register: Registry[PolicyFactory]) -> None:
    """Offer permission policies. The setting ``kernel.policy`` chooses; ``rules`` is the default."""


@hookspec
def register_sandboxes(register: Registry[SandboxFactory]) -> None:
    """Offer confinement of processes, used where ``sandbox.enabled``. The setting ``kernel.sandbox`` chooses."""


@hookspec
def register_stores(register: Registry[TranscriptStore]) -> None:
    """Offer transcript stores. The setting ``kernel.store`` chooses; ``files`` is the default."""


@hookspec
def register_front_ends(register: Registry[FrontEnd]) -> None:
    """Offer front ends: ``text``, ``json``, ``stream-json``, ``terminal`` ... The command line chooses."""


@hookspec
def register_prompt_parts(register: Registry[PromptPart]) -> None:
    """Offer parts of the system prompt and of the first user message, each in its layer."""


@hookspec
def register_extensions(register: Registry[Extension]) -> None:
    """Take part in a session: its start, each prompt, each request. Brings typed commands, and tools that come and go."""


@hookspec
def register_compactors(register: Registry[Compactor]) -> None:
    """Offer strategies that make room in the window. The setting ``kernel.compactor`` chooses; ``summary`` is the default."""


@hookspec
def register_middleware(register: Registry[Middleware]) -> None:
    """Wrap model requests and tool runs. Folded once at the start of a session, by plugin name, first outermost."""


@hookspec
def register_commands(register: Registry[Command]) -> None:
    """Offer subcommands of the ``kernel`` command. Only the plugin of the command that was typed is loaded."""


# == lifecycle: the session ===========================================================================================
@hookspec
def setup(event: e.Setup, session: Session) -> a.SetupResult | None:
    """The launch asked for set-up. Before ``session_start``. Cannot block."""


@hookspec
def session_start(event: e.SessionStart, session: Session) -> a.SessionStartResult | None:
    """A session starts, resumes, forks, was cleared or compacted. Context goes ahead of the first prompt."""


@hookspec
def session_end(event: e.SessionEnd, session: Session) -> a.SessionEndResult | None:
    """The session ends. Observation only; all implementations share a small time budget."""


@hookspec
def instructions_loaded(event: e.InstructionsLoaded, session: Session) -> a.InstructionsLoadedResult | None:
    """An instruction file entered the context. Observation only."""


@hookspec
def config_change(event: e.ConfigChange, session: Session) -> a.ConfigChangeResult | None:
    """A settings or skill file changed. ``decision="block"`` keeps the change from the running session."""


@hookspec
def cwd_changed(event: e.CwdChanged, session: Session) -> a.CwdChangedResult | None:
    """The working directory changed."""


@hookspec
def directory_added(event: e.DirectoryAdded, session: Session) -> a.DirectoryAddedResult | None:
    """A working directory was added."""


@hookspec
def file_changed(event: e.FileChanged, session: Session) -> a.FileChangedResult | None:
    """A watched file changed."""


@hookspec
def notification(event: e.Notification, session: Session) -> a.NotificationResult | None:
    """The host notifies the person. Observation only."""


# == lifecycle: the prompt ============================================================================================
@hookspec
def user_prompt_submit(event: e.UserPromptSubmit, session: Session) -> a.UserPromptSubmitResult | None:
    """A gate. ``decision="block"`` erases the prompt; the reason goes to the person, never to the model."""


@hookspec
def user_prompt_expansion(event: e.UserPromptExpansion,
                          session: Session) -> a.UserPromptExpansionResult | None:
    """A gate. A typed command is about to become a prompt."""


@hookspec
def message_display(event: e.MessageDisplay, session: Session) -> a.MessageDisplayResult | None:
    """Assistant text is about to be shown; ``display_content`` replaces it on the screen only."""


# == lifecycle: the tool call =========================================================================================
@hookspec
def pre_tool_use(event: e.PreToolUse, session: Session) -> a.PreToolUseResult | None:
    """A gate before the permission rules, in every mode. deny > defer > ask > allow; silence approves nothing.

    An implementation that raises or times out denies, and is named in the reason.
    """


@hookspec
def permission_request(event: e.PermissionRequest, session: Session) -> a.PermissionRequestResult | None:
    """A question is about to be asked, or a call refused because nobody can be asked. ``permission`` answers it."""


@hookspec
def permission_denied(event: e.PermissionDenied, session: Session) -> a.PermissionDeniedResult | None:
    """Auto mode refused a call. ``retry`` lets the model try again."""


@hookspec
def post_tool_use(event: e.PostToolUse, session: Session) -> a.PostToolUseResult | None:
    """A call succeeded. May add context, feed a reason back, or replace what the model sees."""


@hookspec
def post_tool_use_failure(event: e.PostToolUseFailure,
                          session: Session) -> a.PostToolUseFailureResult | None:
    """A call that ran failed. May add context or feed a reason back."""


@hookspec
def post_tool_batch(event: e.PostToolBatch, session: Session) -> a.PostToolBatchResult | None:
    """All calls of one message are resolved. ``decision="block"`` ends the turn before the next request."""


# == lifecycle: agents and tasks ======================================================================================
@hookspec
def subagent_start(event: e.SubagentStart, session: Session) -> a.SubagentStartResult | None:
    """A subagent starts. Context goes ahead of its first prompt."""


@hookspec
def subagent_stop(event: e.SubagentStop, session: Session) -> a.SubagentStopResult | None:
    """A subagent finished. ``decision="block"`` or context makes it go on."""


@hookspec
def task_created(event: e.TaskCreated, session: Session) -> a.TaskCreatedResult | None:
    """A task is being created. ``decision="block"`` deletes it."""


@hookspec
def task_completed(event: e.TaskCompleted, session: Session) -> a.TaskCompletedResult | None:
    """A task is about to be completed. ``decision="block"`` keeps it open."""


@hookspec
def teammate_idle(event: e.TeammateIdle, session: Session) -> a.TeammateIdleResult | None:
    """A teammate is about to go idle. ``decision="block"`` keeps it at work."""


@hookspec
def worktree_create(event: e.WorktreeCreate, session: Session) -> a.WorktreeCreateResult | None:
    """A worktree is to be created; ``worktree_path`` names one that the implementation made."""


@hookspec
def worktree_remove(event: e.WorktreeRemove, session: Session) -> a.WorktreeRemoveResult | None:
    """A worktree is removed. Observation only."""


# == lifecycle: the end of a turn, compaction, elicitation, models ====================================================
@hookspec
def stop(event: e.Stop, session: Session) -> a.StopResult | None:
    """The agent finished responding. ``decision="block"`` or context makes it go on, within a cap."""


@hookspec
def stop_failure(event: e.StopFailure, session: Session) -> a.StopFailureResult | None:
    """The turn ended in an API error. Observation only; fires instead of ``stop``."""


@hookspec
def pre_compact(event: e.PreCompact, session: Session) -> a.PreCompactResult | None:
    """A compaction is about to happen. ``decision="block"`` prevents it."""


@hookspec
def post_compact(event: e.PostCompact, session: Session) -> a.PostCompactResult | None:
    """A compaction happened. Observation only."""


@hookspec
def elicitation(event: e.Elicitation, session: Session) -> a.ElicitationHookResult | None:
    """An MCP server asks for input. ``action`` answers without a dialog."""


@hookspec
def elicitation_result(event: e.ElicitationResult, session: Session) -> a.ElicitationResultResult | None:
    """The person answered an elicitation. ``action`` and ``content`` override."""


@hookspec
def pre_model_switch(event: e.PreModelSwitch, session: Session) -> a.PreModelSwitchResult | None:
    """A gate before the session changes its model."""


@hookspec
def post_model_switch(event: e.PostModelSwitch, session: Session) -> a.PostModelSwitchResult | None:
    """The session changed its model."""
