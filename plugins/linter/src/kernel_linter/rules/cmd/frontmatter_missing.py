"""No frontmatter in a command.

Why: The first line is the description.

Bad:

    Do the thing

Good:

    ---
    description: …
    ---
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import STRAY

CODE = "CMD002"
SEVERITY = "info"
FIX = "none"
ON = "command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.front.state == "missing" and text.text.strip() and text.path.name.lower() not in STRAY:
        yield text.at("no frontmatter: the first line is the description")
