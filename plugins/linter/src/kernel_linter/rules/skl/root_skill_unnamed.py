"""A root `SKILL.md` without `name`.

Why: The command is named after the install directory, a version string.

Bad:

    description: …

Good:

    name: format
    description: …
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic

CODE = "SKL055"
SEVERITY = "warning"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for skill in plugin.skills:
        if skill.rel == "SKILL.md" and not skill.data.get("name"):
            yield skill.at("name: missing; the command of a root skill is named after the install folder, a version string")
