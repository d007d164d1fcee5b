"""Unknown entry in `tools` or `disallowedTools`.

Why: Dropped.

Bad:

    tools: Grpe

Good:

    tools: Grep
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import unknown_tools

CODE = "AGT011"
SEVERITY = "warning"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    yield from unknown_tools(text, "tools", "disallowedTools")
