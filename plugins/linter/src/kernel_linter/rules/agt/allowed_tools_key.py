"""`allowed-tools` in an agent without `tools`. Fix: rename.

Why: The agent keeps **all** tools.

Bad:

    allowed-tools: Read

Good:

    tools: Read
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "AGT010"
SEVERITY = "error"
FIX = "safe"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for key in ("allowed-tools", "allowed_tools", "allowedTools"):
        if key in text.data and "tools" not in text.data:
            yield text.at(
                f"{key}: is not read in an agent: it keeps ALL tools; write tools",
                key,
                fix=text.rename_field(key, "tools", "rename it to tools"),
            )
