"""A specifier other than `Agent(...)` in `tools`, for example `Bash(git:*)`.

Why: No documented effect: do not rely on it as a limit.

Bad:

    tools: Bash(git:*)

Good:

    a permission rule or hook
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "AGT016"
SEVERITY = "warning"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for entry in text.tools("tools"):
        if entry.specifier is not None and entry.name not in ("Agent", "Task"):
            yield text.at(
                f"tools: the specifier of {shown(entry.raw)} has no documented effect; limit it with a permission rule or a hook",
                "tools",
            )
