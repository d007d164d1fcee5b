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
from kernel_linter.tools import REMOVED

CODE = "AGT013"
SEVERITY = "info"
FIX = "safe"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for key in ("tools", "disallowedTools"):
        entries = text.tools(key)
        for entry in entries:
            if entry.name in REMOVED:
                left = [e for e in entries if e.name not in REMOVED]
                yield text.at(
                    f"{key}: {entry.name} no longer exists; {REMOVED[entry.name]} took its place",
                    key,
                    fix=text.set_tools(key, left, "drop it") if left else None,
                )
