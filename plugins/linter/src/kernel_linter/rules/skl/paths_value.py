"""`paths` is not text or a list of texts, or starts with an unquoted `*` or `{` (YAML breaks). Fix: quote.

Why: Frontmatter is lost.

Bad:

    paths: **/*.ts

Good:

    paths: "**/*.ts"
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.frontmatter import quote
from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "SKL032"
SEVERITY = "error"
FIX = "safe"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    value = text.data.get("paths")
    if value is not None and not (isinstance(value, str) or (isinstance(value, list) and all(isinstance(v, str) for v in value))):
        yield text.at(f"paths: must be text or a list of texts, found {shown(value)}", "paths")
    elif text.front.state == "broken" and (
        found := re.search(r"^paths:[ \t]+([*{][^\n]*?)[ \t]*\r?$", text.text[text.front.start : text.front.end], re.MULTILINE)
    ):
        span = (text.front.start + found.start(1), text.front.start + found.end(1))
        yield text.at(
            "paths: a value that starts with * or { must be quoted; the frontmatter is lost",
            span=span,
            fix=text.fix_span(span, quote(found[1]), "quote it"),
        )
