"""Two agent files of one plugin share a name in the same sub-folder.

Why: One loads, which one is undefined.

Bad:

    two name: reviewer

Good:

    different names
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.words import counted, shown

CODE = "AGT007"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    agents = plugin.agents
    for (_, name), same in counted([(a.sub, a.name) for a in agents]).items():
        for index in same[1:]:
            yield agents[index].at(
                f"name: {shown(name)} is taken by {agents[same[0]].rel}; which one loads is undefined",
                *(["name"] if "name" in agents[index].data else []),
            )
