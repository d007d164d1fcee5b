"""A symlink to another plugin of the same marketplace.

Why: Copied at install from the marketplace, dropped with `--plugin-dir` or a local path.

Bad:

    skills/x -> ../../b/skills/x

Good:

    fine for a marketplace; test the install
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.tree import within

CODE = "SEC008"
SEVERITY = "info"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    if not plugin.marketplace:
        return
    for rel in plugin.tree.links:
        path = plugin.root / rel
        if path.exists() and within(path, plugin.boundary) and not within(path, plugin.root):
            yield plugin.file(rel).at(
                f"{rel}: a link to another part of the marketplace: copied at install, dropped from a local path", span=(0, 0)
            )
