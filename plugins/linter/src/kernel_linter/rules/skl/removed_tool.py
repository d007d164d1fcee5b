"""A tool that no longer exists (`MultiEdit`, `LS`, `NotebookRead`, `BashOutput`, `KillShell`, `SlashCommand`, `TodoRead`). Fix:
drop.

Why: Dead entry.

Bad:

    allowed-tools: Read, LS

Good:

    allowed-tools: Read
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.tools import REMOVED

CODE = "SKL021"
SEVERITY = "info"
FIX = "safe"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for key in ("allowed-tools", "disallowed-tools"):
        entries = text.tools(key)
        dead = [e for e in entries if e.name in REMOVED]
        for entry in dead:
            left = [e for e in entries if e.name not in REMOVED]
            yield text.at(
                f"{key}: {entry.name} no longer exists; {REMOVED[entry.name]} took its place",
                key,
                fix=text.set_tools(key, left, "drop it") if left else None,
            )
