"""Bidirectional controls, zero-width or tag characters in frontmatter or body.

Why: Instructions the reviewer cannot see reach the model.

Bad:

    (U+202E)

Good:

    plain text
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import HIDDEN, MAYBE_HIDDEN

CODE = "SEC010"
SEVERITY = "error"
FIX = "safe"
ON = "text"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if not MAYBE_HIDDEN.search(text.text):
        return
    for match in HIDDEN.finditer(text.text):
        if match.start() > 0 or match[0] != "\ufeff":
            yield text.at(
                f"a hidden character (U+{ord(match[0]):04X}): text that reviewers cannot see reaches the model",
                span=match.span(),
                fix=text.fix_span(match.span(), "", "remove it"),
            )
