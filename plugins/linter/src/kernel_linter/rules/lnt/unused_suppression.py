"""A suppression comment suppresses nothing.

Why: It hides the next fault of that kind, which nobody decided about.

Bad:

    <!-- kernel-lint: ignore=SKL036 -- long on purpose --> (the text is short)

Good:

    no comment
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import File

CODE = "LNT004"
SEVERITY = "info"
FIX = "none"
ON = "file"
SINCE = "0.1.0"


def check(file: File) -> Iterator[Diagnostic]:
    return
    yield
