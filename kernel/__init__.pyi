"""Written by ``docs/generate.py`` from the tables of ``kernel/__init__.py`` and ``kernel/events/``; do not edit."""

from kernel.agents import AgentRunner as AgentRunner
from kernel.answers import Answer as Answer, Decision as Decision
from kernel.child import Child as Child, ChildSpec as ChildSpec, Ended as Ended
from kernel.cli.run import harness_from as harness_from
from kernel.clock import Clock as Clock
from kernel.compactor import Compactor as Compactor
from kernel.components import Component as Component, Components as Components, components_in as components_in, find_components as find_components
from kernel.dispatch import Outcome as Outcome
from kernel.errors import DuplicateError as DuplicateError, HistoryError as HistoryError, KernelError as KernelError, LoadError as LoadError, LockError as LockError, ManifestError as ManifestError, ModelError as ModelError, PluginError as PluginError, SessionError as SessionError, SettingsError as SettingsError, StreamError as StreamError, ToolError as ToolError, UsageError as UsageError
from kernel.events import ANSWERS as ANSWERS, EVENTS as EVENTS, Event as Event
from kernel.events.agents import SubagentStart as SubagentStart, SubagentStartResult as SubagentStartResult, SubagentStop as SubagentStop, SubagentStopResult as SubagentStopResult, TaskCompleted as TaskCompleted, TaskCompletedResult as TaskCompletedResult, TaskCreated as TaskCreated, TaskCreatedResult as TaskCreatedResult, TeammateIdle as TeammateIdle, TeammateIdleResult as TeammateIdleResult, WorktreeCreate as WorktreeCreate, WorktreeCreateResult as WorktreeCreateResult, WorktreeRemove as WorktreeRemove, WorktreeRemoveResult as WorktreeRemoveResult
from kernel.events.conversation import ConfigChange as ConfigChange, ConfigChangeResult as ConfigChangeResult, CwdChanged as CwdChanged, CwdChangedResult as CwdChangedResult, DirectoryAdded as DirectoryAdded, DirectoryAddedResult as DirectoryAddedResult, FileChanged as FileChanged, FileChangedResult as FileChangedResult, InstructionsLoaded as InstructionsLoaded, InstructionsLoadedResult as InstructionsLoadedResult, Notification as Notification, NotificationResult as NotificationResult, SessionEnd as SessionEnd, SessionEndResult as SessionEndResult, SessionStart as SessionStart, SessionStartResult as SessionStartResult, Setup as Setup, SetupResult as SetupResult
from kernel.events.prompt import MessageDisplay as MessageDisplay, MessageDisplayResult as MessageDisplayResult, UserPromptExpansion as UserPromptExpansion, UserPromptExpansionResult as UserPromptExpansionResult, UserPromptSubmit as UserPromptSubmit, UserPromptSubmitResult as UserPromptSubmitResult
from kernel.events.tool_call import PermissionDenied as PermissionDenied, PermissionDeniedResult as PermissionDeniedResult, PermissionRequest as PermissionRequest, PermissionRequestResult as PermissionRequestResult, PostToolBatch as PostToolBatch, PostToolBatchResult as PostToolBatchResult, PostToolUse as PostToolUse, PostToolUseFailure as PostToolUseFailure, PostToolUseFailureResult as PostToolUseFailureResult, PostToolUseResult as PostToolUseResult, PreToolUse as PreToolUse, PreToolUseResult as PreToolUseResult
from kernel.events.turn import Elicitation as Elicitation, ElicitationHookResult as ElicitationHookResult, ElicitationResult as ElicitationResult, ElicitationResultResult as ElicitationResultResult, PostCompact as PostCompact, PostCompactResult as PostCompactResult, PostModelSwitch as PostModelSwitch, PostModelSwitchResult as PostModelSwitchResult, PreCompact as PreCompact, PreCompactResult as PreCompactResult, PreModelSwitch as PreModelSwitch, PreModelSwitchResult as PreModelSwitchResult, Stop as Stop, StopFailure as StopFailure, StopFailureResult as StopFailureResult, StopResult as StopResult
from kernel.extension import Expansion as Expansion, Extension as Extension, SlashCommand as SlashCommand
from kernel.frontend import Command as Command, Control as Control, Dialogue as Dialogue, FrontEnd as FrontEnd, TyperCommand as TyperCommand, Wire as Wire, run_app as run_app
from kernel.frontmatter import Frontmatter as Frontmatter, parse_frontmatter as parse_frontmatter, read_frontmatter as read_frontmatter
from kernel.harness import Harness as Harness
from kernel.hookspecs import hookimpl as hookimpl
from kernel.inbox import Inbox as Inbox
from kernel.leave import Leave as Leave
from kernel.lint import LintRule as LintRule
from kernel.manifest import Manifest as Manifest
from kernel.merge import Merged as Merged, Text as Text
from kernel.messages import Block as Block, History as History, inert as inert, normalise as normalise, reminder as reminder, text_block as text_block, text_of as text_of
from kernel.middleware import HookRunner as HookRunner, Middleware as Middleware
from kernel.models import ModelCaller as ModelCaller, ModelInfo as ModelInfo, ModelProvider as ModelProvider, ModelRequest as ModelRequest, Prices as Prices, Response as Response, StreamEvent as StreamEvent, Usage as Usage
from kernel.options import Options as Options
from kernel.output import AssistantMessage as AssistantMessage, ConversationReset as ConversationReset, Output as Output, ResultMessage as ResultMessage, StreamMessage as StreamMessage, SystemMessage as SystemMessage, ToolProgress as ToolProgress, UserMessage as UserMessage, encode_output as encode_output
from kernel.plugins import Plugin as Plugin, PluginSet as PluginSet
from kernel.policy import Asker as Asker, Decider as Decider, PermissionCall as PermissionCall, Policy as Policy, PolicyFactory as PolicyFactory, Verdict as Verdict
from kernel.prompt import PromptPart as PromptPart, Section as Section
from kernel.registry import Registry as Registry
from kernel.request import is_too_long as is_too_long, side_request as side_request
from kernel.sandbox import Sandbox as Sandbox, SandboxFactory as SandboxFactory
from kernel.session import Session as Session
from kernel.settings import Layer as Layer, Problem as Problem, Settings as Settings, config_dir as config_dir, git_root as git_root
from kernel.spending import Spending as Spending
from kernel.together import side_by_side as side_by_side
from kernel.toolbox import Toolbox as Toolbox
from kernel.tools import ReadState as ReadState, State as State, Tool as Tool, ToolContext as ToolContext, ToolResult as ToolResult, ToolRunner as ToolRunner
from kernel.transcript import Entry as Entry, EntryKey as EntryKey, EntryStore as EntryStore, Restored as Restored, Transcript as Transcript, TranscriptStore as TranscriptStore
from kernel.usable import ensure_usable as ensure_usable
from kernel.validator import OutputProblem as OutputProblem, OutputValidator as OutputValidator
from kernel.variables import env_number as env_number, env_switch as env_switch
from kernel.websearch import SearchBackend as SearchBackend, SearchHit as SearchHit

CONTRACT: str
__version__: str
__all__: list[str]
_HOMES: dict[str, str]
