"""`description` is a list, map or boolean. Fix: join a list.

Why: Dropped at run time.

Bad:

    description: [a, b]

Good:

    description: "a, b"
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.frontmatter import quote
from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import flow_list

CODE = "SKL006"
SEVERITY = "error"
FIX = "safe"
ON = "text"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    value = text.data.get("description")
    if isinstance(value, list | dict | bool):
        joined = ", ".join(map(str, value)) if isinstance(value, list) and all(isinstance(v, str | int) for v in value) else ""
        yield text.at(
            "description: must be text",
            "description",
            fix=text.set_field("description", quote(joined), "join it") if flow_list(text, joined) else None,
        )
