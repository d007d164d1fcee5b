"""What a plugin is and will do, for people."""

from __future__ import annotations

from typing import Any

from kernel import EVENTS
from kernel_manager.describe import Description

LONGEST = 400
"""Characters of one line; what is longer ends with an ellipsis."""


def facts(found: Description) -> dict[str, Any]:
    """The same as plain data, for ``--json``."""
    code = {"module": found.code.module, "hooks": found.implements, "requires": found.code.requires} if found.code else None
    return {
        "name": found.name, "version": found.version, "description": found.description, "kind": found.kind,
        "digest": found.digest, "runs": found.runs, "python": code, "hooks": found.hooks, "provides": found.provides,
        "tools": found.tools, "skills": found.skills, "commands": found.commands, "agents": found.agents,
        "mcpServers": found.mcp_servers, "lspServers": found.lsp_servers, "monitors": found.monitors,
        "executables": found.executables, "capabilities": found.capabilities, "dependencies": found.dependencies,
        "kernelDependencies": found.kernel_dependencies, "options": sorted(found.user_config), "warnings": found.warnings,
        "errors": found.errors}


def lines(title: str, found: Description) -> list[str]:
    """What it brings and what of it can run, one thing a line. Nothing that the plugin wrote can steer a terminal."""
    out = [f"{title}: {found.description or 'no description'}"]
    rows: list[tuple[str, str]] = []
    if found.code and found.implements:
        rows.append(("Python", f"module {found.code.module}, hooks {', '.join(found.implements)}"))
        rows += [("needs", ", ".join(found.code.requires))] if found.code.requires else []
    rows += [("hooks", ", ".join(f"{event} ({count})" for event, count in sorted(found.hooks.items())))] if found.hooks else []
    rows += [(kind.replace("_", " "), ", ".join(names)) for kind, names in sorted(found.provides.items()) if names]
    for what, names in (("MCP servers", found.mcp_servers), ("LSP servers", found.lsp_servers), ("monitors", found.monitors),
                        ("programs", found.executables), ("skills", found.skills), ("commands", found.commands),
                        ("agents", found.agents)):
        rows += [(what, ", ".join(names))] if names else []
    rows += [("may", ", ".join(f"{k}: {_capability(v)}" for k, v in found.capabilities.items()))] if found.capabilities else []
    rows.append(("runs", "; ".join(found.runs) if found.runs else "nothing: text only"))
    width = max(len(name) for name, _ in rows)
    out += [f"  {name:<{width}}  {value}" for name, value in rows]
    return [plain(line) for line in out]


def brings(provides: dict[str, list[str]], hooks: list[str]) -> str:
    """What a plugin registers by kind, and the events that its Python part answers."""
    parts = [f"{kind}: {' '.join(given)}" for kind, given in provides.items()]
    answered = [name for name in hooks if not name.startswith("register_")]
    if answered:
        parts.append("hooks: " + ("every event" if len(answered) == len(EVENTS) else " ".join(answered)))
    return ", ".join(parts)


def _capability(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def plain(text: str) -> str:
    told = "".join(c if c.isprintable() else "?" for c in text[:LONGEST + 1])
    return told if len(told) <= LONGEST else told[:LONGEST - 1] + "…"
