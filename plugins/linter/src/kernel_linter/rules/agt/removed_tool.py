"""Removed tool in `tools`.

Why: Dead entry.

Bad:

    tools: Read, LS

Good:

    tools: Read, Glob
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import removed_tools

CODE = "AGT013"
SEVERITY = "info"
FIX = "safe"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    yield from removed_tools(text, "tools", "disallowedTools")
