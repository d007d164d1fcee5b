"""Two skills of one plugin end in the same command name.

Why: One of them is unreachable.

Bad:

    two skills with name: review

Good:

    different names
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.words import counted, shown

CODE = "SKL013"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    skills = plugin.skills
    for name, same in counted([s.name for s in skills]).items():
        for index in same[1:]:
            yield skills[index].at(
                f"name: {shown(name)} is the command name of {skills[same[0]].rel} too; one of them is unreachable",
                *(["name"] if "name" in skills[index].data else []),
            )
