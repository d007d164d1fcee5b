"""`memory` is not user, project or local.

Why: No memory.

Bad:

    memory: true

Good:

    memory: project
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import MEMORIES
from kernel_linter.words import shown

CODE = "AGT020"
SEVERITY = "error"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    value = text.data.get("memory")
    if value is not None and value not in MEMORIES:
        yield text.at(f"memory: {shown(value)} is none of {', '.join(MEMORIES)}", "memory")
