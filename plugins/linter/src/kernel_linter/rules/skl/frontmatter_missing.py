"""No frontmatter block.

Why: The model sees the first paragraph as description.

Bad:

    # My skill

Good:

    ---
    description: …
    ---
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL002"
SEVERITY = "warning"
FIX = "none"
ON = "skill"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.front.state == "missing" and text.text.strip():
        yield text.at("no frontmatter: the model sees the first paragraph as description", severity=None)
