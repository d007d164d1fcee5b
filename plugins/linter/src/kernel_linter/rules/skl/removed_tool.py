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
from kernel_linter.texts import removed_tools

CODE = "SKL021"
SEVERITY = "info"
FIX = "safe"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    yield from removed_tools(text, "allowed-tools", "disallowed-tools")
