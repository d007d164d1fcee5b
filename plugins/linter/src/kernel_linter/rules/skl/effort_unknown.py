"""`effort` is not low, medium, high, xhigh, max. Also agents.

Why: Ignored.

Bad:

    effort: ultra

Good:

    effort: max
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import EFFORTS
from kernel_linter.words import shown

CODE = "SKL028"
SEVERITY = "warning"
FIX = "none"
ON = "skill command agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    value = text.data.get("effort")
    if (
        value is not None
        and not (isinstance(value, str) and value in EFFORTS)
        and not (text.kind == "agent" and isinstance(value, int))
    ):
        yield text.at(f"effort: {shown(value)} is none of {', '.join(EFFORTS)}", "effort")
