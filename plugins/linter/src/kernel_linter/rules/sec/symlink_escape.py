"""A symlink whose target lies outside the repository (or outside the plugin when installed from a path).

Why: Skipped at install; the component is missing.

Bad:

    skills -> /srv/skills

Good:

    real files
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.tree import within

CODE = "SEC006"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for rel in plugin.tree.links:
        path = plugin.root / rel
        if path.exists() and not within(path, plugin.root, plugin.boundary):
            yield plugin.file(rel).at(
                f"{rel}: a link that leads outside the {'repository' if plugin.marketplace else 'plugin'}; it is skipped at "
                f"install",
                span=(0, 0),
            )
