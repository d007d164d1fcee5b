"""The built wheel does not contain `.claude-plugin/` and the component folders.

Why: Works from a checkout, empty after install.

Bad:

    package data missing

Good:

    include it
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.python_side import distribution
from kernel_linter.rule import Diagnostic

CODE = "KRN002"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    project = distribution(plugin)
    if project and project.points and plugin.manifest and (missing := project.unpackaged()):
        yield plugin.file("pyproject.toml").at(
            f"the wheel does not carry {', '.join(missing)}: add it to [tool.hatch.build.targets.wheel.force-include] "
            "or to the package data"
        )
