"""A tool name that is neither built in, nor `mcp__…`, nor a declared tool of a kernel plugin.

Why: The grant matches nothing.

Bad:

    allowed-tools: Grepp

Good:

    allowed-tools: Grep
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import unknown_tools

CODE = "SKL020"
SEVERITY = "warning"
FIX = "none"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    yield from unknown_tools(text, "allowed-tools", "disallowed-tools")
