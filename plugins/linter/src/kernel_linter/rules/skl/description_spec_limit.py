"""`description` over 1,024 characters.

Why: Upload and other hosts refuse it.

Bad:

    1,150 characters

Good:

    ≤ 1,024
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL008"
SEVERITY = "info"
FIX = "none"
ON = "skill"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if len(text.description) > 1024:
        yield text.at(f"description: {len(text.description):,} characters; other hosts refuse more than 1,024", "description")
