r"""As SKL001 for agents. Most often a description with `<example>` text, `user:` lines and `\n`.

Why: The agent loads under its file name with all tools and no description, or (outside plugins) is skipped.

Bad:

    description: Use it. Context: user says: "x"

Good:

    description: |
      Use it. Context: user says: "x"
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import broken_frontmatter

CODE = "AGT001"
SEVERITY = "error"
FIX = "safe"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    yield from broken_frontmatter(text)
