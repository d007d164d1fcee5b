"""A `SKILL.md` in the plugin that no default or manifest path reaches.

Why: Never loads.

Bad:

    building-x/SKILL.md at the root level

Good:

    skills/building-x/SKILL.md
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import outer_catalogue, skipped

CODE = "SKL053"
SEVERITY = "warning"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    covered = {os.path.realpath(s.path) for s in plugin.skills}
    roots = [
        r.removesuffix("/.claude-plugin/plugin.json") for r in plugin.tree.files if r.endswith("/.claude-plugin/plugin.json")
    ]
    for rel in plugin.tree.files:
        if (
            not rel.endswith("/SKILL.md")
            or rel.startswith("skills/")
            or os.path.realpath(plugin.root / rel) in covered
            or skipped(rel)
        ):
            continue
        if not any(rel.startswith(f"{root}/") for root in roots) and not outer_catalogue(plugin, rel):
            yield plugin.file(rel).at(f"{rel}: no default and no manifest path reaches it; it never loads")
