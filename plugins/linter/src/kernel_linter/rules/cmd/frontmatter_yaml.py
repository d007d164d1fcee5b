"""As SKL001 for command files. Most often `argument-hint: [a] [b]`.

Why: Description, tools and hints are lost.

Bad:

    argument-hint: [pr] [branch]

Good:

    argument-hint: "[pr] [branch]"
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import broken_frontmatter

CODE = "CMD001"
SEVERITY = "error"
FIX = "safe"
ON = "command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    yield from broken_frontmatter(text)
