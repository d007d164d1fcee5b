"""`skills` names a skill that the plugin lacks or that has `disable-model-invocation: true`.

Why: Skipped with a debug line.

Bad:

    skills: [sql-styl]

Good:

    skills: [sql-style]
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "AGT022"
SEVERITY = "warning"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    value = text.data.get("skills")
    names = (
        re.split(r"[\s,]+", value.strip())
        if isinstance(value, str)
        else [str(v) for v in value]
        if isinstance(value, list)
        else []
    )
    for name in names:
        if not text.plugin or not name or (":" in name and not name.startswith(f"{text.plugin.name}:")):
            continue
        bare = name.rpartition(":")[2]
        found = [s for s in text.plugin.skills if bare in (s.name, s.stem)]
        if not found and bare not in {c.stem for c in text.plugin.commands}:
            yield text.at(f"skills: {shown(name)} is no skill of this plugin and is skipped", "skills", about=name)
        elif found and found[0].flag("disable-model-invocation", False):
            yield text.at(f"skills: {shown(name)} has disable-model-invocation and cannot be preloaded", "skills")
