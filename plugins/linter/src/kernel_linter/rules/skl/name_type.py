"""`name` is not a string (a bare number, list, null). Fix: quote.

Why: The reference validator fails; older hosts crashed.

Bad:

    name: 3000

Good:

    name: "3000"
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "SKL010"
SEVERITY = "error"
FIX = "safe"
ON = "skill"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if "name" in text.data and not isinstance(text.data["name"], str):
        value = text.data["name"]
        yield text.at(
            f"name: must be text, found {shown(value)}",
            "name",
            fix=text.set_field("name", f'"{value}"', "quote it")
            if isinstance(value, int | float) and not isinstance(value, bool)
            else None,
        )
