"""The path holds no plugin, no marketplace and no component.

Why: A check of the wrong folder would pass without having looked at anything.

Bad:

    kernel plugins validate docs

Good:

    kernel plugins validate my-plugin
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import File

CODE = "LNT003"
SEVERITY = "error"
FIX = "none"
ON = "file"
SINCE = "0.1.0"


def check(file: File) -> Iterator[Diagnostic]:
    return
    yield
