"""Entry point name, manifest `name` and distribution name do not agree after normalisation.

Why: Enable and disable act on different things.

Bad:

    dist `kernel-x`, name `y`

Good:

    one name
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.python_side import distribution, normal
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "KRN003"
SEVERITY = "warning"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    project = distribution(plugin)
    if project is None or not project.points or not plugin.data.get("name"):
        return
    names = {normal(n) for n in project.points}
    if normal(plugin.name) not in names:
        yield plugin.head.at(
            f"name: {shown(plugin.name)} is not the entry point's name, {shown(next(iter(project.points)))}", "name"
        )
    elif project.name and normal(project.name) not in (normal(plugin.name), f"kernel-{normal(plugin.name)}"):
        yield plugin.head.at(f"name: {shown(plugin.name)} does not agree with the distribution {shown(project.name)}", "name")
