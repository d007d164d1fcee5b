"""A suppression comment gives no reason.

Why: Nobody can tell later whether it still holds.

Bad:

    <!-- kernel-lint: ignore=SKL036 -->

Good:

    <!-- kernel-lint: ignore=SKL036 -- a table that must stay in one piece -->
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import File

CODE = "LNT005"
SEVERITY = "info"
FIX = "none"
ON = "file"
SINCE = "0.1.0"


def check(file: File) -> Iterator[Diagnostic]:
    return
    yield
