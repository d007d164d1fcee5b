"""`version` in `plugin.json` differs from the distribution's.

Why: Updates are missed.

Bad:

    1.0.0 / 1.1.0

Good:

    same
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.python_side import distribution
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "KRN004"
SEVERITY = "warning"
FIX = "safe"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    project = distribution(plugin)
    own = plugin.data.get("version")
    if project and project.points and plugin.manifest and project.version and isinstance(own, str) and own != project.version:
        yield plugin.manifest.at(
            f"version: {shown(own)} here, {shown(project.version)} in pyproject.toml",
            "version",
            fix=plugin.manifest.set_value(project.version, "version", message="write the distribution's"),
        )
