"""No `description`.

Why: Empty line in the menu; the model guesses.

Bad:

    model: opus

Good:

    description: …
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "CMD003"
SEVERITY = "info"
FIX = "none"
ON = "command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.has_fields and text.data.get("description") in (None, ""):
        yield text.at("description: missing; the menu shows an empty line")
