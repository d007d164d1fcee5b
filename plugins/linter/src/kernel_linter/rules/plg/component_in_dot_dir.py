"""`skills/ commands/ agents/ hooks/ output-styles/ .mcp.json` inside `.claude-plugin/`.

Why: Nothing there is ever found, and no tool says so. Fix: move to the root.

Bad:

    .claude-plugin/skills/a/SKILL.md

Good:

    skills/a/SKILL.md
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic, Fix

CODE = "PLG031"
SEVERITY = "error"
FIX = "unsafe"
ON = "plugin"
SINCE = "0.1.0"

PLACES = ("skills", "commands", "agents", "hooks", "output-styles", ".mcp.json", ".lsp.json", "workflows", "monitors", "themes")


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for name in plugin.names(".claude-plugin"):
        if name in PLACES:
            rel = f".claude-plugin/{name}"
            fix = (
                None
                if plugin.exists(name)
                else Fix("unsafe", f"move it to {name}", moves=((str(plugin.root / rel), str(plugin.root / name)),))
            )
            yield plugin.file(rel).at(
                f"{rel}: nothing in .claude-plugin/ but the manifests is ever found; move it to the plugin root", fix=fix
            )
