"""No `description`.

Why: Never delegated to; skipped outside plugins.

Bad:

    name: x

Good:

    description: …
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "AGT004"
SEVERITY = "error"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.has_fields and text.data.get("description") in (None, ""):
        yield text.at("description: missing; nothing is ever delegated to the agent")
