"""No `description`, or empty.

Why: The model cannot tell when to use it.

Bad:

    name: x

Good:

    name: x
    description: …
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL005"
SEVERITY = "warning"
FIX = "none"
ON = "skill"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.has_fields and text.data.get("description") in (None, ""):
        yield text.at(
            "description: missing; the model cannot tell when to use the skill",
            *(["description"] if "description" in text.data else []),
        )
