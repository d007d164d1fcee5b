"""(text) `$1` is used as an argument and `$0` never is; shell functions, `awk`, SQL and money are excluded. Fix: shift by one.

Why: `$0` is the first argument; the first word is lost and the last placeholder stays.

Bad:

    Review PR $1

Good:

    Review PR $0
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic, Fix
from kernel_linter.texts import line_of

CODE = "SKL039"
SEVERITY = "warning"
FIX = "unsafe"
ON = "skill command"
SINCE = "0.1.0"

TOKEN = re.compile(r"(?<![\\$\w])\$([1-9])(?![\w]|[.,]\d)")
CODE_LINE = re.compile(r"awk|sed |SELECT|\blocal \b|function |^\s*\w+\(\)|=\"?\$[1-9]|\bshift\b|--?\w+\) ", re.IGNORECASE)


def check(text: TextFile) -> Iterator[Diagnostic]:
    if "$" not in text.body:
        return
    if re.search(r"(?<!\\)\$(?:0\b|ARGUMENTS\[)", text.unfenced):
        return
    found = [m for m in TOKEN.finditer(text.unfenced) if not CODE_LINE.search(line_of(text.unfenced, m.start()))]
    hint = text.data.get("argument-hint")
    if found and (hint or text.kind == "command" or "arguments" in text.data):
        edits = tuple(text.swap(m.span(1), str(int(m[1]) - 1)) for m in found)
        yield text.at(
            f"{found[0][0]} is used and $0 never is: arguments count from 0",
            span=found[0].span(),
            fix=Fix("unsafe", "shift every number by one", edits),
        )
