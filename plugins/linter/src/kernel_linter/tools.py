"""Tool names: which exist, which existed, how lists of them are written."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

BUILT_IN = frozenset("""
    Read Write Edit NotebookEdit Glob Grep Bash PowerShell TaskOutput TaskStop WebFetch WebSearch TodoWrite TaskCreate TaskGet
    TaskUpdate TaskList Agent Task Skill AskUserQuestion EnterPlanMode ExitPlanMode ToolSearch WaitForMcpServers
    ListMcpResourcesTool ListMcpResources ReadMcpResourceTool ReadMcpResource ReadMcpResourceDirTool RefreshMcpTools
    StructuredOutput SendMessage ListAgents Monitor LSP EnterWorktree ExitWorktree CronCreate CronDelete CronList
    ScheduleWakeup Workflow ReportFindings PushNotification EndConversation REPL Artifact Projects RemoteTrigger SendUserFile
    ShareOnboardingGuide ShowOnboardingRolePicker SendFeedback TeamCreate TeamDelete
""".split())
"""Tools of the host, with the names that still count as aliases."""

REMOVED = {"MultiEdit": "Edit", "LS": "Glob", "NotebookRead": "Read", "BashOutput": "TaskOutput", "KillShell": "TaskStop",
           "KillBash": "TaskStop", "SlashCommand": "Skill", "TodoRead": "TaskList", "View": "Read",
           "AgentOutputTool": "TaskOutput",
           "BashOutputTool": "TaskOutput"}
"""Tools that no longer exist, with what took their place."""

NOT_FOR_SUBAGENTS = frozenset("AskUserQuestion EnterPlanMode EndConversation ScheduleWakeup TaskOutput Workflow "
                              "WaitForMcpServers".split())
BACKGROUND = frozenset("""
    Read Grep Glob Bash PowerShell Edit Write NotebookEdit WebFetch WebSearch TodoWrite Skill ToolSearch EnterWorktree
    ExitWorktree Monitor TaskStop SendMessage Artifact Agent Task ExitPlanMode
""".split())
BUILT_IN_AGENTS = frozenset(("general-purpose", "Explore", "Plan", "claude", "fork", "statusline-setup", "claude-code-guide",
                             "output-style-setup"))

_ENTRY = re.compile(r"\s*([^\s,()]+(?:\((?:[^()]|\([^()]*\))*\)?)?)[\s,]*")


class ToolEntry(Struct, frozen=True):
    """One entry of a list: ``Bash(git *)`` has the name ``Bash`` and the specifier ``git *``."""

    raw: str
    name: str
    specifier: str | None


def entry(raw: str) -> ToolEntry:
    name, bracket, rest = raw.strip().partition("(")
    return ToolEntry(raw.strip(), name.strip(), rest.removesuffix(")").strip() if bracket else None)


def split_tools(value: Any) -> list[ToolEntry]:
    """Entries of a text (split at spaces and commas outside parentheses) or of a list of texts."""
    if isinstance(value, str):
        return [entry(m[1]) for m in _ENTRY.finditer(value)]
    if isinstance(value, list):
        return [e for item in value if isinstance(item,
                                                  str) for e in (split_tools(item) if "," in item else [entry(item)]) if e.raw]
    return []


def known(name: str, extra: frozenset[str] = frozenset()) -> bool:
    return name in BUILT_IN or name.startswith("mcp__") or name in extra


def near(name: str, extra: frozenset[str] = frozenset()) -> str:
    """A hint for a misspelt name, or nothing."""
    from difflib import get_close_matches

    lower = {n.lower(): n for n in (*BUILT_IN, *extra)}
    found = get_close_matches(name.lower(), lower, n=1, cutoff=0.75)
    return f"; did you mean {lower[found[0]]}?" if found else ""
