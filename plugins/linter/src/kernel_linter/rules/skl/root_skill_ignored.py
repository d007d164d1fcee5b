"""`SKILL.md` at the root while `skills/` or a `skills` key exists.

Why: The root file is not loaded.

Bad:

    SKILL.md + skills/

Good:

    "skills": ["./"] or move it
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic

CODE = "SKL054"
SEVERITY = "warning"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    if plugin.is_file("SKILL.md") and not any(s.rel == "SKILL.md" for s in plugin.skills):
        why = "skills/ exists" if plugin.has_skills_folder else "there is a skills key"
        yield plugin.file("SKILL.md").at(
            f"SKILL.md: the root file is not loaded because {why}; name './' under skills or move it"
        )
