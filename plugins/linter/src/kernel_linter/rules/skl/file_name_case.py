"""`skill.md`, `Skill.md`.

Why: Found on some systems only.

Bad:

    skills/a/skill.md

Good:

    skills/a/SKILL.md
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic, Fix
from kernel_linter.texts import in_named

CODE = "SKL050"
SEVERITY = "error"
FIX = "safe"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for rel in plugin.tree.files:
        folder, _, name = rel.rpartition("/")
        if (
            name.lower() == "skill.md"
            and name != "SKILL.md"
            and (folder.startswith("skills/") or folder in ("", "skills") or in_named(plugin, folder))
        ):
            yield plugin.file(rel).at(
                f"{rel}: must be written SKILL.md; other spellings are found on some systems only",
                fix=Fix("safe", "rename it", moves=((str(plugin.root / rel), str(plugin.root / folder / "SKILL.md")),)),
            )
