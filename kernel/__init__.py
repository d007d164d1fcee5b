"""kernel: a plugin-first microkernel for agent harnesses.

These are the public names. They are imported when they are first used, so that ``import kernel`` costs nothing.
A plugin imports them, its declared dependencies and itself; nothing else of the kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel.answers import Answer as Answer, Decision as Decision
    from kernel.clock import Clock as Clock
    from kernel.compactor import Compactor as Compactor
    from kernel.components import (
        Component as Component, Components as Components, components_in as components_in, find_components as find_components)
    from kernel.errors import (
        DuplicateError as DuplicateError, HistoryError as HistoryError, KernelError as KernelError, LoadError as
        LoadError, LockError as LockError, ManifestError as ManifestError, ModelError as ModelError, PluginError as
        PluginError, SessionError as SessionError, SettingsError as SettingsError, StreamError as StreamError, ToolError as
        ToolError, UsageError as UsageError)
    from kernel.events import ANSWERS as ANSWERS, EVENTS as EVENTS, Event as Event
    from kernel.events.agents import *
    from kernel.events.conversation import *
    from kernel.events.prompt import *
    from kernel.events.tool_call import *
    from kernel.events.turn import *
    from kernel.extension import Expansion as Expansion, Extension as Extension, SlashCommand as SlashCommand
    from kernel.frontend import Command as Command, FrontEnd as FrontEnd
    from kernel.frontmatter import (
        Frontmatter as Frontmatter, parse_frontmatter as parse_frontmatter, read_frontmatter as read_frontmatter)
    from kernel.frontmatter import (
        Frontmatter as Frontmatter, parse_frontmatter as parse_frontmatter, read_frontmatter as read_frontmatter)
    from kernel.harness import Harness as Harness
    from kernel.hookspecs import hookimpl as hookimpl
    from kernel.manifest import Manifest as Manifest
    from kernel.merge import Merged as Merged, Text as Text, merge as merge
    from kernel.messages import (
        Block as Block, History as History, normalise as normalise, reminder as reminder, text_block as text_block,
        text_of as text_of)
    from kernel.middleware import Middleware as Middleware
    from kernel.models import (
        ModelCaller as ModelCaller, ModelInfo as ModelInfo, ModelProvider as ModelProvider, ModelRequest as
        ModelRequest, Prices as Prices, Response as Response, StreamEvent as StreamEvent, Usage as Usage)
    from kernel.options import Options as Options
    from kernel.output import (
        AssistantMessage as AssistantMessage, Output as Output, ResultMessage as ResultMessage, StreamMessage as
        StreamMessage, SystemMessage as SystemMessage, ToolProgress as ToolProgress, UserMessage as UserMessage,
        encode_output as encode_output)
    from kernel.plugins import Plugin as Plugin, PluginSet as PluginSet
    from kernel.policy import PermissionCall as PermissionCall, Policy as Policy, PolicyFactory as PolicyFactory
    from kernel.policy import Verdict as Verdict
    from kernel.prompt import PromptPart as PromptPart
    from kernel.registry import Registry as Registry
    from kernel.request import is_too_long as is_too_long, side_request as side_request
    from kernel.sandbox import Sandbox as Sandbox, SandboxFactory as SandboxFactory
    from kernel.session import Session as Session
    from kernel.spending import Spending as Spending
    from kernel.settings import (
        Layer as Layer, Problem as Problem, Settings as Settings, config_dir as config_dir, git_root as git_root)
    from kernel.toolbox import Toolbox as Toolbox
    from kernel.tools import (
        ReadState as ReadState, State as State, Tool as Tool, ToolContext as ToolContext, ToolResult as ToolResult,
        ToolRunner as ToolRunner)
    from kernel.transcript import (
        Entry as Entry, Restored as Restored, Transcript as Transcript, TranscriptStore as TranscriptStore)

__version__ = "0.1.0"
CONTRACT = "2.1.240"
"""The version of the public contract that this release follows."""

_HOMES = {
    "agents": """
        AgentRunner
    """,
    "answers": """
        Answer Decision
    """,
    "clock": """
        Clock
    """,
    "compactor": """
        Compactor
    """,
    "components": """
        Component Components components_in find_components
    """,
    "errors": """
        DuplicateError HistoryError KernelError LoadError LockError ManifestError ModelError
        PluginError SessionError SettingsError StreamError ToolError UsageError
    """,
    "events": """
        ANSWERS EVENTS Event
    """,
    "extension": """
        Expansion Extension SlashCommand
    """,
    "frontend": """
        Command FrontEnd
    """,
    "frontmatter": """
        Frontmatter parse_frontmatter read_frontmatter
    """,
    "frontmatter": """
        Frontmatter parse_frontmatter read_frontmatter
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
        PermissionCall Policy PolicyFactory Verdict
    """,
    "prompt": """
        PromptPart
    """,
    "registry": """
        Registry
    """,
    "request": """
        is_too_long side_request
    """,
    "sandbox": """
        Sandbox SandboxFactory
    """,
    "session": """
        Session
    """,
    "spending": """
        Spending
    """,
    "toolbox": """
        Toolbox
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


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "__all__":
        value: Any = ["CONTRACT", "__version__", *sorted({*_HOME, *_of_events()})]
    elif name in _HOME:
        value = getattr(import_module(f"kernel.{_HOME[name]}"), name)
    elif name[:1].isupper() and name in _of_events():
        value = getattr(import_module("kernel.events"), name)
    else:
        raise AttributeError(f"module 'kernel' has no attribute {name!r}")
    globals()[name] = value
    return value


def _of_events() -> set[str]:
    """Every event and every answer is public, without being named here."""
    from kernel.events import ANSWERS, EVENTS

    return {*EVENTS, *(answer.__name__ for answer in ANSWERS.values())}


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
