"""The ``if`` of a hook handler: one rule against one call (hooks contract, section 5).

It is a filter against needless starts, so whatever is uncertain lets the handler run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kernel import Tool

from . import powershell, specifiers
from .facts import Facts
from .paths import PathPattern
from .rules import RENAMED, Rule, RuleError
from .shell import Parser
from .syntax import Opaque

_DYNAMIC = re.compile(r"\$\(|`|\$[A-Za-z_{0-9@*#?!$-]|[<>]\(")


def rule_matches(text: str, tool_name: str, input: dict[str, Any], facts: Facts, parser: Parser, tool: Tool | None,
                 complain: Callable[[str], None]) -> bool:
    """Whether a handler with this ``if`` runs for the call."""
    try:
        rule = Rule(text, "ask", "project", facts.cwd)
    except RuleError as error:
        complain(f"hooks: the condition {text!r} cannot be read ({error}), so its handler always runs")
        return True
    if tool is None:
        from .paper import paper_tool

        tool = paper_tool(RENAMED.get(tool_name, tool_name))
    if not rule.names((tool_name, RENAMED.get(tool_name, tool_name))):
        return False
    if rule.bare:
        return True
    if rule.parameter_of(tool.input_schema, tool.name) is not None:
        return specifiers.covers(rule, tool, input)
    if tool.permission == "command":
        command = tool.permission_content(input) or ""
        return _powershell(rule, command) if tool.name == "PowerShell" else _command(rule, command, parser)
    if tool.permission == "path":
        return _path(rule, tool, input, facts)
    return specifiers.covers(rule, tool, input)


def _command(rule: Rule, command: str, parser: Parser) -> bool:
    pattern = rule.command
    if not pattern.name_only and _DYNAMIC.search(command):
        return True  # the real command cannot be known
    try:
        script = parser.parse(command)
    except Opaque:
        return True
    subs = parser.analysed(command, script)
    if script.unsure or any(sub.unknown for sub in subs):
        return True
    return any(pattern.matches(form) for sub in subs for form in sub.strict)


def _powershell(rule: Rule, command: str) -> bool:
    try:
        calls = powershell.read(command)
    except Opaque:
        return True
    return any(powershell.covers(rule, call) for call in calls)


def _path(rule: Rule, tool: Tool, input: dict[str, Any], facts: Facts) -> bool:
    """The narrow reading of a pattern, as allow rules have it."""
    pattern = PathPattern(rule.specifier or "**", loose=False, cwd=facts.cwd, home=facts.view.home, directory=rule.directory)
    for path in tool.permission_paths(input):
        target = facts.places.target(path, facts.cwd)
        if target is None or any(pattern.covers(p, fold=facts.view.ignores_case(p)) for p in target.all):
            return True
    return False


