"""`description` plus `when_to_use` is over 1,536 characters.

Why: The end, where trigger words often are, is cut off.

Bad:

    3,000 characters

Good:

    key use case first, under 1,536
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL007"
SEVERITY = "warning"
FIX = "none"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    when = text.data.get("when_to_use")
    size = len(text.description) + (len(when) if isinstance(when, str) else 0)
    if size > 1536:
        yield text.at(f"description and when_to_use: {size:,} characters; the listing cuts at 1,536", "description")
