"""Unknown key (`keepCodingInstructions`).

Why: No effect: the coding instructions disappear.

Bad:

    keepCodingInstructions: true

Good:

    keep-coding-instructions: true
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import STYLE
from kernel_linter.words import nearest, shown

CODE = "OST002"
SEVERITY = "info"
FIX = "none"
ON = "style"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for key in text.data:
        if key not in STYLE:
            near = nearest(key, STYLE)
            yield text.at(f"{shown(key)}: no host reads this field" + (f"; did you mean {near}?" if near else ""), key)
