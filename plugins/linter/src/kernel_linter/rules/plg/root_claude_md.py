"""`CLAUDE.md` at the plugin root.

Why: Never loaded as context for users of the plugin. Move the text into a skill.

Bad:

    CLAUDE.md

Good:

    skills/conventions/SKILL.md
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic

CODE = "PLG033"
SEVERITY = "warning"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    if plugin.is_file("CLAUDE.md"):
        yield plugin.file("CLAUDE.md").at(
            "CLAUDE.md: is never loaded as context for users of the plugin; move its text into a skill"
        )
