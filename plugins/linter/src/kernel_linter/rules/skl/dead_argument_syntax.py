"""(text) `$ARGUMENTS.0`, `${ARGUMENTS}`, `{{args}}`, `$ARG1`.

Why: Never substituted.

Bad:

    ${ARGUMENTS}

Good:

    $ARGUMENTS
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import inline_spans

CODE = "SKL041"
SEVERITY = "error"
FIX = "safe"
ON = "skill command"
SINCE = "0.1.0"

DEAD = re.compile(
    r"\$ARGUMENTS\.\d+|\$\{ARGUMENTS(?:\[\d+\])?\}|\{\{\s*(?:args|arguments|ARGUMENTS)\s*\}\}|\$ARG\d\b|\$\{?ARGS\[\d\]\}?"
)


def right(token: str) -> str:
    index = re.search(r"\d+", token)
    if not index:
        return "$ARGUMENTS"
    from_one = token.startswith("$ARG") and token[4:5].isdigit() and index[0] != "0"
    return f"$ARGUMENTS[{int(index[0]) - from_one}]"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for match in DEAD.finditer(text.masked):
        yield text.at(
            f"{match[0]} is never replaced; write {right(match[0])}",
            span=match.span(),
            fix=text.fix_span(match.span(), right(match[0]), f"write {right(match[0])}"),
        )
    for start, end in inline_spans(text):
        inner = text.text[start:end].strip("`").strip()
        if token := DEAD.fullmatch(inner.strip("\"'")):
            yield text.at(f"{token[0]} is never replaced; write {right(token[0])}", span=(start, end))
