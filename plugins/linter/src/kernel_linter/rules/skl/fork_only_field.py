"""`agent` or `background` without `context: fork`.

Why: Ignored.

Bad:

    agent: Explore

Good:

    context: fork
    agent: Explore
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL024"
SEVERITY = "warning"
FIX = "none"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for key in ("agent", "background"):
        if key in text.data and text.data.get("context") != "fork":
            yield text.at(f"{key}: is read with context: fork only", key)
