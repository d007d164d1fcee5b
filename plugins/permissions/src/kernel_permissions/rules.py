"""Permission rules: their grammar and what a rule list becomes (permissions contract, sections 2 and 3)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

from .patterns import CommandPattern, Star
from .syntax import lazy

Behavior = Literal["allow", "ask", "deny"]
Source = Literal["managed", "cli", "local", "project", "user", "session", "skill", "host"]

UNTOUCHABLE = "EndConversation"
"""The one tool that no rule touches."""

PRIMARY = {"Bash": "command", "PowerShell": "command", "Read": "file_path", "Edit": "file_path", "Write": "file_path",
           "MultiEdit": "file_path", "Grep": "path", "Glob": "path", "NotebookEdit": "notebook_path", "WebFetch": "url"}
"""The field that a tool's own specifier is about; it cannot be matched as a parameter."""
RENAMED = {"Task": "Agent"}
PATH_RULES = ("Read", "Edit")
NEVER_CONSULTED = frozenset(("Write", "NotebookEdit", "MultiEdit", "Glob", "Grep"))
"""Path rules for these are accepted and not consulted (6.2)."""
SPECIFIED = frozenset(("Bash", "PowerShell", "Read", "Edit", "WebFetch", "Agent", "Skill", "Cd"))
"""Usual tools whose rules take a specifier."""
SHELLS = ("Bash", "PowerShell")
KNOWN_TOOLS = frozenset((
    "Agent AskUserQuestion Artifact Bash Cd CronCreate CronDelete CronList Edit EndConversation EnterPlanMode EnterWorktree "
    "ExitPlanMode ExitWorktree Glob Grep LSP ListAgents ListMcpResourcesTool Monitor MultiEdit NotebookEdit PowerShell "
    "PushNotification Read ReadMcpResourceTool ReportFindings ScheduleWakeup SendMessage Skill StructuredOutput TaskCreate "
    "TaskGet TaskList TaskOutput TaskStop TaskUpdate TodoWrite ToolSearch WaitForMcpServers WebFetch WebSearch Workflow "
    "Write").split())

_NAME = re.compile(r"[A-Za-z_*][^()\s]*")
_PARAMETER = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*:\s*(.*)", re.DOTALL)
_UNMCP = re.compile(r"[^A-Za-z0-9_*-]")


class RuleError(ValueError):
    """A rule that cannot be read; the text says why."""


class Rule:
    """One rule of one list.

    ``directory``: what ``/x`` in a path rule is relative to. ``origin``: the file or flag it comes from.
    """

    def __init__(self, text: str, behavior: Behavior, source: Source, directory: str = "/", origin: str = "") -> None:
        """:raises RuleError: it does not parse."""
        self.text = text.strip()
        self.behavior = behavior
        self.source = source
        self.directory = directory
        self.origin = origin
        self.tool, self.specifier = parse(text)

    def __repr__(self) -> str:
        return f"Rule({self.text!r}, {self.behavior}, {self.source})"

    @property
    def bare(self) -> bool:
        """Whether it matches every call of its tool."""
        return self.specifier is None

    @lazy
    def name(self) -> Star:
        return Star(self.tool)

    @lazy
    def command(self) -> CommandPattern:
        return CommandPattern(self.specifier or "*", fold=self.tool == "PowerShell")

    @lazy
    def parameter(self) -> tuple[str, Star] | None:
        """``param:value``, whether or not the tool has such a parameter."""
        match = _PARAMETER.fullmatch(self.specifier or "")
        return (match[1], Star(match[2].strip())) if match else None

    def names(self, names: Iterable[str]) -> bool:
        """Whether its tool part means a tool that has these names."""
        if self.tool.startswith("mcp__"):
            server, tool = mcp_parts(self.tool)
            return any(_mcp_matches(server, tool, self.name, n) for n in names if n.startswith("mcp__"))
        return any(self.name.matches(n) for n in names)

    def parameter_of(self, schema: dict[str, Any], tool_name: str) -> tuple[str, Star] | None:
        """Its parameter and value where it is a parameter rule for a tool with this schema (2.8)."""
        if self.behavior == "allow" or self.parameter is None:
            return None
        properties = schema.get("properties")
        named = isinstance(properties, dict) and self.parameter[0] in properties
        return self.parameter if named and PRIMARY.get(tool_name) != self.parameter[0] else None


def parse(text: str) -> tuple[str, str | None]:
    """The tool part and the specifier (``None``: every call).

    :raises RuleError: it does not fit the grammar.
    """
    text = text.strip()
    head, bracket, rest = text.partition("(")
    specifier: str | None = None
    if bracket:
        if not rest.endswith(")"):
            raise RuleError("a rule with '(' must end with ')'")
        specifier = re.sub(r"\\([()\\])", r"\1", rest[:-1].strip())
        specifier = None if specifier in ("", "*") else specifier
    name = head.strip()
    if name.startswith("mcp__"):
        name = _UNMCP.sub("_", name)
    if not _NAME.fullmatch(name):
        raise RuleError("a rule is 'Tool' or 'Tool(specifier)'")
    return RENAMED.get(name, name), specifier


def mcp_parts(name: str) -> tuple[str, str]:
    server, _, tool = name[5:].partition("__")
    return server, tool


def _mcp_matches(server: str, tool: str, name: Star, candidate: str) -> bool:
    if not tool and not server.endswith("*"):  # mcp__server: all of its tools
        return candidate.startswith(f"mcp__{server}__")
    return name.matches(candidate)


def faults(rule: Rule, known: frozenset[str] | set[str]) -> tuple[str, bool]:
    """What is wrong with a rule that parses, and whether it still counts. ``known``: tool names beside the usual ones."""
    tool, specifier = rule.tool, rule.specifier
    if rule.behavior == "allow" and "*" in tool:
        server, inner = mcp_parts(tool) if tool.startswith("mcp__") else ("", "")
        if not inner or "*" in server or not server:
            return "a glob in the tool name of an allow rule is only legal behind mcp__<server>__; it approves nothing", False
    if rule.behavior != "allow" and "_" not in tool and "*" not in tool and tool not in KNOWN_TOOLS and tool not in known:
        return "there is no such tool", True
    if specifier is None:
        return "", True
    if rule.parameter and rule.behavior != "allow" and PRIMARY.get(tool) == rule.parameter[0] and not tool.startswith("mcp__"):
        return f"{rule.parameter[0]} cannot be matched as a parameter; use {tool}(pattern)", False
    if tool in NEVER_CONSULTED and not (rule.parameter and rule.behavior != "allow"):
        quiet = tool == "Glob" and rule.source == "cli" and rule.behavior == "allow"
        instead = "Read" if tool in ("Glob", "Grep") else "Edit"
        return "" if quiet else f"path rules for {tool} are not consulted; use {instead}(...)", False
    if tool == "WebFetch" and not (rule.parameter and (rule.parameter[0] == "domain" or rule.behavior != "allow")):
        return "a rule for WebFetch is WebFetch(domain:HOST)", False
    takes_none = (tool in KNOWN_TOOLS and tool not in SPECIFIED | NEVER_CONSULTED) or tool.startswith("mcp__")
    if takes_none and not (rule.parameter and rule.behavior != "allow"):
        return f"{tool} takes no specifier, so the rule covers no call", False
    if tool in PATH_RULES and specifier.startswith("!"):
        return "a pattern cannot begin with '!'", False
    if tool in PATH_RULES and rule.source == "managed" and specifier.startswith("/") and not specifier.startswith("//"):
        return "'/x' in managed settings means the file-system root; write '//x'", True
    return "", True


class CommandIndex:
    """Rules for shell commands by the first word of their pattern, since most rules cannot match a given command.

    ``bare``: a rule without a pattern, which matches every command.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.bare: Rule | None = None
        self._by_word: dict[str, list[Rule]] = {}
        self._any: list[Rule] = []
        for rule in rules:
            if rule.bare:
                self.bare = self.bare or rule
                continue
            word = rule.command.text.split(" ", 1)[0]
            (self._any if "*" in word else self._by_word.setdefault(word, [])).append(rule)

    def of(self, text: str) -> list[Rule]:
        """The rules that may match a command with this text."""
        mine = self._by_word.get(text.split(" ", 1)[0])
        return [*mine, *self._any] if mine else self._any


class RuleSet:
    """All rules in force, each list in the order of its sources."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = list(rules)
        lists: dict[str, list[Rule]] = {"allow": [], "ask": [], "deny": []}
        for rule in self.rules:
            lists[rule.behavior].append(rule)
        self.lists = lists
        self._commands: dict[str, CommandIndex] = {}
        self._named: dict[tuple[str, tuple[str, ...], str], list[Rule]] = {}
        self._scoped: dict[tuple[str, str], list[Rule]] = {}

    def commands(self, behavior: str) -> CommandIndex:
        """The rules of one list that have a pattern for shell commands."""
        found = self._commands.get(behavior)
        if found is None:
            found = self._commands[behavior] = CommandIndex(self.scoped(behavior, "Bash"))
        return found

    def scoped(self, behavior: str, tool: str) -> list[Rule]:
        """Rules with a specifier whose tool part means this tool, also by a glob (``*(rm *)``)."""
        found = self._scoped.get((behavior, tool))
        if found is None:
            found = self._scoped[behavior, tool] = [r for r in self.lists[behavior] if not r.bare and r.names((tool,))]
        return found

    def scopes(self, tool: str) -> bool:
        """Whether a deny or ask rule for that shell has a specifier: then a command nobody can name is asked (5.2)."""
        return bool(self.scoped("deny", tool) or self.scoped("ask", tool))

    def of(self, behavior: Behavior, names: tuple[str, ...], rule_name: str = "") -> list[Rule]:
        """Rules whose tool part means one of these names. A bare rule for ``rule_name`` (``Edit`` for ``Write``) is
        among them; its path rules are the business of ``paths.py``."""
        key = (behavior, names, rule_name)
        found = self._named.get(key)
        if found is None:
            found = self._named[key] = [r for r in self.lists[behavior]
                                        if r.names(names) or (r.bare and rule_name and r.tool == rule_name)]
        return found


def scalar_text(value: Any) -> str | None:
    """The text that a parameter rule compares; ``None`` for what is no scalar."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        import json

        return json.dumps(value)
    return None


def split_flag(values: Iterable[str]) -> list[str]:
    """Rules of ``--allowedTools``: separated by commas and blanks outside parentheses (headless contract, 2.4)."""
    rules: list[str] = []
    for value in values:
        depth, begin = 0, 0
        for i, c in enumerate(value + ","):
            if c == "(":
                depth += 1
            elif c == ")":
                depth = max(0, depth - 1)
            elif c in ", \t\n" and (depth == 0 or i == len(value)):
                if value[begin:i].strip():
                    rules.append(value[begin:i].strip())
                begin = i + 1
    return rules
