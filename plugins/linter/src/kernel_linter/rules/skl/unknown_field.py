"""A frontmatter key that no host reads. Fix only for close misspellings and wrong case style (`disableModelInvocation`).

Why: No effect; upload paths refuse it.

Bad:

    version: 1.0.0

Good:

    metadata:
      version: "1.0.0"
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import SKILL
from kernel_linter.words import nearest, shown

CODE = "SKL016"
SEVERITY = "info"
FIX = "safe"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for key in text.data:
        if key in SKILL or key in ("tools", "allowed_tools", "allowedTools", "allowed-tool"):
            continue
        near = nearest(key, SKILL)
        fix = text.rename_field(key, near, f"rename it to {near}") if near else None
        yield text.at(f"{shown(key)}: no host reads this field" + (f"; did you mean {near}?" if near else ""), key, fix=fix)
