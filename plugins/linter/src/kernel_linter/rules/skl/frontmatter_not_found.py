"""The block exists but is not read: blank line or text before it, byte-order mark, missing end line, `--- ` variants. Fix:
repair the delimiters.

Why: Same as no frontmatter.

Bad:

    (blank line)
    ---
    description: …

Good:

    ---
    description: …
    ---
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import repair_delimiters

CODE = "SKL003"
SEVERITY = "error"
FIX = "safe"
ON = "text"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.front.state in ("misplaced", "unclosed"):
        yield text.at(
            f"the frontmatter is not read: {text.front.error}",
            span=(text.front.lead, text.front.lead + 3),
            fix=repair_delimiters(text),
        )
