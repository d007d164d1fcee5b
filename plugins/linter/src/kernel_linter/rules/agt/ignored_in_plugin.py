"""`hooks`, `mcpServers` or `permissionMode` in a plugin agent.

Why: Ignored for security: the intended limit is not there.

Bad:

    permissionMode: plan

Good:

    tools: Read, Grep
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "AGT008"
SEVERITY = "warning"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.in_plugin and text.plugin:
        for key in ("hooks", "mcpServers", "permissionMode"):
            if key in text.data:
                yield text.at(f"{key}: is ignored in a plugin's agent: the limit that was meant is not there", key)
