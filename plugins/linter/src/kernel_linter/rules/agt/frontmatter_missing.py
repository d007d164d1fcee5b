"""No frontmatter. Info when the file looks like documentation.

Why: In a plugin it becomes an agent without description.

Bad:

    # Agent

Good:

    ---
    name: …
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import STRAY

CODE = "AGT002"
SEVERITY = "error"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.front.state == "missing" and text.text.strip() and text.path.name.lower() not in STRAY:
        documentation = text.path.stem.isupper() or text.sub.split("/")[-1] in ("docs", "references", "templates")
        yield text.at("no frontmatter: it becomes an agent without a description", severity="info" if documentation else None)
