"""`tools`, `allowed_tools` in a command.

Why: No grant.

Bad:

    tools: Bash

Good:

    allowed-tools: Bash(git *)
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "CMD006"
SEVERITY = "warning"
FIX = "safe"
ON = "command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for key in ("tools", "allowed_tools", "allowedTools", "allowed-tool"):
        if key in text.data:
            yield text.at(
                f"{key}: grants nothing in a command; write allowed-tools",
                key,
                fix=text.rename_field(key, "allowed-tools", "rename it to allowed-tools"),
            )
