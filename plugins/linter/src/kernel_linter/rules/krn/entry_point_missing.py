"""A kernel plugin distribution has a `.claude-plugin/plugin.json` but no entry point in the kernel group, or the reverse.

Why: Loads on one side only.

Bad:

    plugin.json without entry points

Good:

    both
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.python_side import distribution
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "KRN001"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    project = distribution(plugin)
    if project is None:
        return
    points = project.points
    if not points and project.kernel and plugin.manifest and project.wants_code:
        yield plugin.file("pyproject.toml").at(
            '[project.entry-points."kernel.plugins"]: missing: the manifest names hooks of a module that nobody can find'
        )
    elif points and plugin.manifest is None:
        yield plugin.file("pyproject.toml").at(
            f"the entry point {shown(next(iter(points)))} has no .claude-plugin/plugin.json beside it"
        )
