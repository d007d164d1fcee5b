"""`allowed-tools` or `disallowed-tools` is not a string or list of strings.

Why: Dropped.

Bad:

    allowed-tools: 5

Good:

    allowed-tools: [Read, Grep]
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.frontmatter import quote
from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import flow_list
from kernel_linter.words import shown

CODE = "SKL018"
SEVERITY = "error"
FIX = "safe"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for key in ("allowed-tools", "disallowed-tools"):
        value = text.data.get(key)
        if value is not None and not (
            isinstance(value, str) or (isinstance(value, list) and all(isinstance(v, str) for v in value))
        ):
            fix = (
                text.set_field(key, quote(", ".join(map(str, value))), "write it as text")
                if isinstance(value, list) and flow_list(text, "x", key) and all(isinstance(v, str | int) for v in value)
                else None
            )
            yield text.at(f"{key}: must be text or a list of texts, found {shown(value)}", key, fix=fix)
