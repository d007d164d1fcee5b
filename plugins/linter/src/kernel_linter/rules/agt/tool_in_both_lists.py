"""A tool in `tools` and `disallowedTools`.

Why: Removed.

Bad:

    both list Bash

Good:

    one list
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "AGT017"
SEVERITY = "warning"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    denied = {e.name for e in text.tools("disallowedTools") if e.specifier is None}
    for entry in text.tools("tools"):
        if entry.name in denied:
            yield text.at(f"tools: {entry.name} stands in disallowedTools too and is removed", "tools")
