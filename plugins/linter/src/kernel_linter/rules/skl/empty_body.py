"""No text after the frontmatter.

Why: The skill tells the model nothing.

Bad:

    ---
    …
    ---

Good:

    text
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL035"
SEVERITY = "warning"
FIX = "none"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if (
        text.front.state != "missing"
        and not text.text[text.front.body :].strip()
        and text.front.state not in ("unclosed", "misplaced")
    ):
        yield text.at("there is no text after the frontmatter")
    elif not text.text.strip():
        yield text.at("the file is empty")
