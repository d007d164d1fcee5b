"""kernel: a plugin-first microkernel for agent harnesses.

These are the public names. They are imported when they are first used, so that ``import kernel`` costs nothing.
A plugin imports them, its declared dependencies and itself; nothing else of the kernel.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
CONTRACT = "2.1.240"
"""The version of the public contract that this release follows."""

_HOMES = {
    "agents": "AgentRunner",
    "answers": "Answer Decision",
    "cli.run": "harness_from",
    "child": "Child ChildSpec Ended",
    "clock": "Clock",
    "compactor": "Compactor",
    "components": "Component Components components_in find_components",
    "dispatch": "Outcome",
    "errors": (
        "DuplicateError HistoryError KernelError LoadError LockError ManifestError ModelError PluginError SessionError "
        "SettingsError StreamError ToolError UsageError"
    ),
    "events": "ANSWERS EVENTS Event",
    "extension": "Expansion Extension SlashCommand",
    "frontend": "Command Control Dialogue FrontEnd TyperCommand Wire run_app",
    "frontmatter": "Frontmatter parse_frontmatter read_frontmatter",
    "harness": "Harness",
    "hookspecs": "hookimpl",
    "inbox": "Inbox",
    "leave": "Leave",
    "lint": "LintRule",
    "manifest": "Manifest",
    "merge": "Merged Text",
    "messages": "Block History inert normalise reminder text_block text_of",
    "middleware": "HookRunner Middleware",
    "models": "ModelCaller ModelInfo ModelProvider ModelRequest Prices Response StreamEvent Usage",
    "options": "Options",
    "output": (
        "AssistantMessage ConversationReset Output ResultMessage StreamMessage "
        "SystemMessage ToolProgress UserMessage encode_output"
    ),
    "plugins": "Plugin PluginSet",
    "policy": "Asker Decider PermissionCall Policy PolicyFactory Verdict",
    "prompt": "PromptPart Section",
    "registry": "Registry",
    "request": "is_too_long side_request",
    "sandbox": "Sandbox SandboxFactory",
    "session": "Session",
    "settings": "Layer Problem Settings config_dir git_root",
    "spending": "Spending",
    "together": "side_by_side",
    "toolbox": "Toolbox",
    "tools": "ReadState State Tool ToolContext ToolResult ToolRunner",
    "usable": "ensure_usable",
    "variables": "env_number env_switch",
    "validator": "OutputProblem OutputValidator",
    "transcript": "Entry EntryKey EntryStore Restored Transcript TranscriptStore",
    "websearch": "SearchBackend SearchHit",
}
"""Module -> its public names. Type checkers read ``__init__.pyi``, which ``python docs/generate.py`` writes from this table."""

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
