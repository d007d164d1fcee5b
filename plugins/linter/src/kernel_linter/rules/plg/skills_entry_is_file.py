"""A `skills` entry points at a file. Fix: its directory.

Why: Load failure for that skill.

Bad:

    {"skills": "./skills/a/SKILL.md"}

Good:

    {"skills": "./skills/a"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "PLG027"
SEVERITY = "error"
FIX = "safe"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for ref in plugin.paths("skills"):
        if ref.sound and plugin.is_file(ref.rel):
            parent = ref.rel.rpartition("/")[0]
            yield ref.at(
                f"skills: {shown(ref.value)} is a file; name the folder that holds SKILL.md: './{parent}'",
                fix=ref.file.set_value(f"./{parent}", *ref.pointer, message="name its folder"),
            )
