"""The descriptions of one plugin take more than 25 % of the default listing budget (8,000 characters).

Why: Other skills lose their descriptions.

Bad:

    40 skills × 900 characters

Good:

    shorter, or `disable-model-invocation`
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic

CODE = "SKL056"
SEVERITY = "info"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    total = sum(
        min(len(s.description) + len(str(s.data.get("when_to_use") or "")), 1536)
        for s in (*plugin.skills, *plugin.commands)
        if not s.flag("disable-model-invocation", False)
    )
    if total > 2000 and len(plugin.skills) + len(plugin.commands) > 1:
        yield plugin.head.at(
            f"the descriptions of its skills and commands take {total:,} characters: over a quarter of the 8,000 that all "
            f"plugins share"
        )
