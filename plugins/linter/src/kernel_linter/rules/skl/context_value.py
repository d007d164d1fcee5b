"""`context` is not `fork`.

Why: Runs inline.

Bad:

    context: isolated

Good:

    context: fork
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "SKL023"
SEVERITY = "error"
FIX = "none"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    value = text.data.get("context")
    if value is not None and value != "fork":
        yield text.at(f"context: {shown(value)} is not 'fork'; the text runs inline", "context")
