"""Which tools a subagent has (subagents contract, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kernel_subagents.definition import Definition

if TYPE_CHECKING:
    from kernel import Tool

NEVER = frozenset({"AskUserQuestion", "EndConversation", "EnterPlanMode", "ScheduleWakeup", "TaskOutput", "WaitForMcpServers",
                   "Workflow"})
"""Not for any subagent, whatever its definition says."""
FOREGROUND = frozenset({
    "CronCreate", "CronDelete", "CronList", "LSP", "ListAgents", "ListMcpResourcesTool", "PushNotification",
    "ReadMcpResourceTool", "ReportFindings", "StructuredOutput", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate"})
"""Not for agents in the background. They keep what reads, edits, runs and delegates, and what servers and other plugins bring."""
EDITING = ("Read", "Write", "Edit")


class Chosen(Struct, kw_only=True):
    """``admits``: whether a tool is the agent's. ``unknown``, ``barred``, ``unmatched``: entries that came to nothing.
    ``more``: tools of servers of its own will come.
    """

    admits: Callable[[Tool], bool]
    tools: list[Tool]
    unknown: list[str] = field(default_factory=list)
    barred: list[str] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)
    more: bool = False

    def refusal(self, name: str) -> str | None:
        """Why an agent whose list came to nothing is not started; ``None`` where it has tools, or wants none."""
        groups = [("unrecognised", self.unknown), ("not available to subagents", self.barred),
                  ("matching nothing in this session", self.unmatched)]
        if self.tools or self.more or not any(entries for _, entries in groups):
            return None
        said = "; ".join(f"{what}: {', '.join(entries)}" for what, entries in groups if entries)
        return f"Agent '{name}' would be spawned with zero tools — refusing. Entries of its tools: {said}."


def choose(definition: Definition, tools: Iterable[Tool], *, background: bool, nests: bool, plan: bool,
           known: Iterable[str] = ()) -> Chosen:
    """Filter the parent's tools.

    :param nests: whether the agent may have agents of its own.
    :param plan: the agent runs in plan mode by its definition.
    :param known: all tool names that exist, in this session or not.
    """
    pool = list(tools)
    more = EDITING if definition.memory and definition.tools is not None else ()

    def survives(tool: Tool) -> bool:
        if tool.name in NEVER or (tool.name == "Agent" and not nests) or (tool.name == "ExitPlanMode" and not plan):
            return False
        return not background or tool.name not in FOREGROUND

    removed = [_matcher(entry) for entry in definition.disallowed]
    wanted = None if definition.tools is None else [_matcher(entry) for entry in (*definition.tools, *more)]

    def admits(tool: Tool) -> bool:
        if not survives(tool) or any(covers(tool) for covers in removed):
            return False
        return wanted is None or any(covers(tool) for covers in wanted)

    chosen = Chosen(admits=admits, tools=[tool for tool in pool if admits(tool)])
    names = {*known, *(name for tool in pool for name in (tool.name, *tool.aliases))}
    own = {name for entry in definition.servers if isinstance(entry, dict) for name in entry}
    for entry in definition.tools or ():
        if entry.startswith("mcp__") and entry.split("__")[1] in own:
            chosen.more = True
            continue
        covers = _matcher(entry)
        hits = [tool for tool in pool if covers(tool)]
        if any(chosen.admits(tool) for tool in hits) or (hits and any(c(t) for t in hits for c in removed)):
            continue
        name = _base(entry)
        if hits or name in NEVER:
            chosen.barred.append(entry)
        else:
            (chosen.unmatched if name in names or name.startswith("mcp__") else chosen.unknown).append(entry)
    return chosen


def _base(entry: str) -> str:
    return entry.partition("(")[0].strip()


def _matcher(entry: str) -> Callable[[Tool], bool]:
    """Whether an entry of a list means a tool: by name or old name, a server's tools, a pattern of such names."""
    name = _base(entry)
    if name == "*":
        return lambda tool: True
    if name.startswith("mcp__"):
        if name.count("__") == 1 and not name.endswith("*"):
            name += "__*"
        return lambda tool: _fits(name, tool.name)
    return lambda tool: tool.name == name or name in tool.aliases


def _fits(pattern: str, name: str) -> bool:
    """Whether a name is one that a pattern with ``*`` means; never slow, whatever the pattern."""
    first, *between = pattern.split("*")
    if not between:
        return name == pattern
    if not name.startswith(first):
        return False
    at = len(first)
    for part in between[:-1]:
        found = name.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(name) - len(between[-1]) >= at and name.endswith(between[-1])
