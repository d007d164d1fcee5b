"""A `.md` file directly in `skills/`.

Why: Not a skill. Fix: make a folder, or move to `commands/`.

Bad:

    skills/format.md

Good:

    skills/format/SKILL.md
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic, Fix
from kernel_linter.words import STRAY

CODE = "SKL052"
SEVERITY = "warning"
FIX = "unsafe"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for name in plugin.names("skills"):
        if (
            name.lower().endswith(".md")
            and name.lower() not in STRAY
            and name.lower() != "skill.md"
            and plugin.is_file(f"skills/{name}")
        ):
            stem = name[:-3]
            target = plugin.root / "skills" / stem / "SKILL.md"
            yield plugin.file(f"skills/{name}").at(
                f"skills/{name}: a file directly in skills/ is no skill; make it skills/{stem}/SKILL.md",
                fix=None
                if target.parent.exists()
                else Fix("unsafe", "give it a folder", moves=((str(plugin.root / "skills" / name), str(target)),)),
            )
