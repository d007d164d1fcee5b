"""`metadata` is not a map.

Why: Dropped.

Bad:

    metadata: x

Good:

    metadata:
      owner: x
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL033"
SEVERITY = "warning"
FIX = "none"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if "metadata" in text.data and not isinstance(text.data["metadata"], dict):
        yield text.at("metadata: must be a map; it is dropped", "metadata")
