"""A component file with a byte-order mark, or CRLF together with an unquoted `: ` value.

Why: Hosts before 2.1.239 do not see the block; the second form is skipped.

Bad:

    BOM

Good:

    UTF-8, LF
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.frontmatter import repaired
from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL058"
SEVERITY = "info"
FIX = "safe"
ON = "text style"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.bom:
        yield text.at(
            "starts with a byte-order mark; hosts before 2.1.239 do not see the frontmatter",
            span=(0, 1),
            fix=text.fix_span((0, 1), "", "remove the mark"),
        )
    elif (
        text.front.state == "broken"
        and "\r\n" in text.text[: text.front.end]
        and repaired(text.text[text.front.start : text.front.end].replace("\r\n", "\n"))
    ):
        yield text.at(
            "CRLF line ends together with an unquoted ': ' value: the host does not repair it",
            span=(text.front.start, text.front.start + 1),
            fix=text.fix_span((0, len(text.text)), text.text.replace("\r\n", "\n"), "write LF line ends"),
        )
