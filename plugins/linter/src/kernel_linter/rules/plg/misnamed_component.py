"""A root entry that looks like a component under a wrong name: `skill/ command/ agent/ Skills/ hook/ mcp.json lsp.json
hooks.json output_styles/ monitor/`.

Why: Silently ignored.

Bad:

    mcp.json

Good:

    .mcp.json
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic, Fix
from kernel_linter.tables import PATH_FIELDS

CODE = "PLG032"
SEVERITY = "warning"
FIX = "unsafe"
ON = "plugin"
SINCE = "0.1.0"

FOLDERS = {
    "skill": "skills",
    "command": "commands",
    "agent": "agents",
    "hook": "hooks",
    "output_styles": "output-styles",
    "outputStyles": "output-styles",
    "output-style": "output-styles",
    "monitor": "monitors",
    "Skills": "skills",
    "Commands": "commands",
    "Agents": "agents",
    "Hooks": "hooks",
    "workflow": "workflows",
    "theme": "themes",
}
FILES = {
    "mcp.json": ".mcp.json",
    "lsp.json": ".lsp.json",
    "hooks.json": "hooks/hooks.json",
    "monitors.json": "monitors/monitors.json",
    ".mcp.jsonc": ".mcp.json",
    "mcp_servers.json": ".mcp.json",
}


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    used = {ref.rel.split("/")[0] for key in PATH_FIELDS for ref in plugin.paths(key)}
    for name in plugin.names(""):
        right = (FILES if not plugin.is_dir(name) else FOLDERS).get(name)
        if not right or name in used or right in plugin.names(""):
            continue
        inside = [] if name in FILES else plugin.names(name)
        if name in FOLDERS and not any(
            n.endswith((".md", ".json", ".js")) or plugin.exists(f"{name}/{n}/SKILL.md") for n in inside
        ):
            continue
        if (plugin.root / right).exists() and os.path.realpath(plugin.root / right) == os.path.realpath(plugin.root / name):
            continue
        yield plugin.file(name).at(
            f"{name}: is ignored; the host looks for {right}",
            fix=None
            if "/" in right or plugin.exists(right)
            else Fix("unsafe", f"rename it to {right}", moves=((str(plugin.root / name), str(plugin.root / right)),)),
        )
