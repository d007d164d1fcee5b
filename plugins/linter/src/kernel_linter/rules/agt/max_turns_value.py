"""`maxTurns` is not a positive integer.

Why: Ignored.

Bad:

    maxTurns: many

Good:

    maxTurns: 20
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "AGT021"
SEVERITY = "error"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    value = text.data.get("maxTurns")
    if value is not None and not (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        yield text.at(f"maxTurns: {shown(value)} is no whole number above 0", "maxTurns")
