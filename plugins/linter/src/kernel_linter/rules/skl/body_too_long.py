"""Over 500 lines, or over about 5,000 tokens.

Why: After compaction only the first 5,000 tokens return.

Bad:

    900 lines

Good:

    move detail to references/
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL036"
SEVERITY = "info"
FIX = "none"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    body = text.body
    lines, tokens = body.count("\n") + 1, len(body) // 4
    if lines > 500 or tokens > 5000:
        yield text.at(
            f"{lines} lines, about {tokens:,} tokens: after compaction only the first 5,000 tokens return; move detail to "
            f"files beside it",
            span=(text.front.body, text.front.body),
        )
