"""No `name`. Fix: the file name.

Why: User and project copies are skipped silently.

Bad:

    description: …

Good:

    name: reviewer
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import KEBAB

CODE = "AGT003"
SEVERITY = "warning"
FIX = "safe"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.has_fields and not text.data.get("name"):
        yield text.at(
            "name: missing; copies of the file outside a plugin are skipped without a message",
            fix=text.fix_span((text.front.start, text.front.start), f"name: {text.path.stem}\n", "write the file name")
            if "name" not in text.data and KEBAB.match(text.path.stem)
            else None,
        )
