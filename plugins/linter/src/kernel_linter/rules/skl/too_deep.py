"""`SKILL.md` two or more levels below `skills/` that no `skills` entry covers.

Why: Not discovered.

Bad:

    skills/db/sql/SKILL.md

Good:

    "skills": ["./skills/db/"]
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import skipped

CODE = "SKL051"
SEVERITY = "error"
FIX = "unsafe"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    covered = {s.rel for s in plugin.skills}
    for rel in plugin.tree.files:
        if (
            rel.endswith("/SKILL.md")
            and rel.startswith("skills/")
            and rel.count("/") > 2
            and rel not in covered
            and not skipped(rel)
        ):
            parent = rel.removesuffix("/SKILL.md").rpartition("/")[0]
            yield plugin.file(rel).at(f"{rel}: lies too deep to be discovered; name './{parent}/' under skills in the manifest")
