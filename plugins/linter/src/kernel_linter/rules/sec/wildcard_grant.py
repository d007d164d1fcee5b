"""`allowed-tools: "*"`, or `mcp__*`.

Why: Everything is pre-approved.

Bad:

    "*"

Good:

    the tools needed
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "SEC003"
SEVERITY = "warning"
FIX = "none"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for entry in text.granted:
        if entry.name in ("*", "mcp__*", "mcp__*__*", ".*"):
            yield text.at(f"allowed-tools: {shown(entry.raw)} approves everything in advance", "allowed-tools")
