"""No text: the system prompt is empty.

Why: An agent without instructions.

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

CODE = "AGT023"
SEVERITY = "error"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.front.state in ("ok", "broken", "empty", "not-mapping") and not text.text[text.front.body :].strip():
        yield text.at("there is no text after the frontmatter: the system prompt is empty")
    elif not text.text.strip():
        yield text.at("the file is empty: the system prompt is empty")
