"""`color` outside the eight names.

Why: Ignored.

Bad:

    color: magenta

Good:

    color: pink
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import COLORS
from kernel_linter.words import shown

CODE = "AGT018"
SEVERITY = "info"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    value = text.data.get("color")
    if value is not None and value not in COLORS:
        yield text.at(f"color: {shown(value)} is none of {', '.join(COLORS)}", "color")
