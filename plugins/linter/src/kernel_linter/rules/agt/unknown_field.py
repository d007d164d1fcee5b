"""Unknown key (`capabilities`, `version`, `max_turns`).

Why: No effect.

Bad:

    max_turns: 5

Good:

    maxTurns: 5
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import AGENT
from kernel_linter.words import nearest, shown

CODE = "AGT009"
SEVERITY = "info"
FIX = "safe"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for key in text.data:
        if key in AGENT or key in ("allowed-tools", "allowed_tools", "allowedTools"):
            continue
        near = nearest(key, AGENT)
        yield text.at(
            f"{shown(key)}: no host reads this field" + (f"; did you mean {near}?" if near else ""),
            key,
            fix=text.rename_field(key, near, f"rename it to {near}") if near else None,
        )
