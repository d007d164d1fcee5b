"""`isolation` is not `worktree`.

Why: Runs in the main checkout.

Bad:

    isolation: container

Good:

    isolation: worktree
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "AGT019"
SEVERITY = "error"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    value = text.data.get("isolation")
    if value is not None and value != "worktree":
        yield text.at(f"isolation: {shown(value)} is not 'worktree'; the agent runs in the main checkout", "isolation")
