"""`name` not lower-case letters, digits, hyphens.

Why: Hook matchers and `@` mentions miss it.

Bad:

    name: Code Reviewer

Good:

    name: code-reviewer
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import KEBAB, shown

CODE = "AGT006"
SEVERITY = "warning"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    name = text.data.get("name")
    if (
        isinstance(name, str | int)
        and name
        and ":" not in str(name)
        and not str(name).startswith("-")
        and not KEBAB.match(str(name))
    ):
        yield text.at(
            f"name: {shown(str(name))} should be lower-case letters, digits and hyphens: matchers and mentions miss it", "name"
        )
