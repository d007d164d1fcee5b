"""A folder under `skills/` with files but no `SKILL.md` (helper names `_*`, `shared`, `references`, `assets` excluded).

Why: Nothing loads from it.

Bad:

    skills/format/notes.md

Good:

    skills/format/SKILL.md
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic

CODE = "SKL049"
SEVERITY = "warning"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"

HELPERS = re.compile(
    r"^[_.]|^(?:shared|references?|assets?|scripts?|templates?|examples?|docs?|resources?|lib|common|utils|tests?|data)$"
)


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    covered = {s.rel.rpartition("/")[0] for s in plugin.skills}
    deep = {rel for rel in plugin.tree.files if rel.lower().endswith("/skill.md")}
    for name in plugin.names("skills"):
        folder = f"skills/{name}"
        if not plugin.is_dir(folder) or HELPERS.match(name) or folder in covered or any(d.startswith(f"{folder}/") for d in deep):
            continue
        if plugin.names(folder) and not plugin.exists(f"{folder}/.claude-plugin/plugin.json"):
            yield plugin.file(folder).at(f"{folder}: a folder without SKILL.md; nothing loads from it")
