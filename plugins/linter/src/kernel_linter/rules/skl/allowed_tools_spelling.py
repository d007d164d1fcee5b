"""`allowed_tools`, `allowedTools`, `allowed-tool`.

Why: No grant.

Bad:

    allowed_tools: Read

Good:

    allowed-tools: Read
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL019"
SEVERITY = "warning"
FIX = "safe"
ON = "skill"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for key in ("allowed_tools", "allowedTools", "allowed-tool"):
        if key in text.data:
            yield text.at(
                f"{key}: is not read; write allowed-tools",
                key,
                fix=text.rename_field(key, "allowed-tools", "rename it to allowed-tools"),
            )
