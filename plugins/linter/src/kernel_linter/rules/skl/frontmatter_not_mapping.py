"""The block is empty, a list or a scalar.

Why: No fields.

Bad:

    ---
    ---

Good:

    ---
    description: …
    ---
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL004"
SEVERITY = "error"
FIX = "none"
ON = "text"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.front.state in ("empty", "not-mapping"):
        yield text.at(f"the frontmatter must be a mapping: {text.front.error}")
