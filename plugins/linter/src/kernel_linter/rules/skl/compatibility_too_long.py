"""`compatibility` not text or over 500 characters.

Why: Other hosts refuse it.

Bad:

    …

Good:

    ≤ 500
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL034"
SEVERITY = "info"
FIX = "none"
ON = "skill"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    value = text.data.get("compatibility")
    if value is not None and (not isinstance(value, str) or len(value) > 500):
        yield text.at("compatibility: must be text of at most 500 characters", "compatibility")
