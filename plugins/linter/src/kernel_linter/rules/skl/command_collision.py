"""A skill and a command of one plugin have the same name.

Why: The skill wins; the command file never runs.

Bad:

    commands/plan.md + skills/plan

Good:

    keep one
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "SKL014"
SEVERITY = "warning"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    skills = {s.name: s for s in plugin.skills}
    for command in plugin.commands:
        name = ":".join([*command.sub.split("/"), command.stem]) if command.sub else command.stem
        if name in skills:
            yield command.at(f"the skill {skills[name].rel} has the same name {shown(name)}; this file never runs")
