"""A name in `arguments` is never used, or is not an identifier, or hides `ARGUMENTS`.

Why: The argument has no effect.

Bad:

    arguments: [issue]

Good:

    … $issue …
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "SKL040"
SEVERITY = "warning"
FIX = "none"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    value = text.data.get("arguments")
    names = value.split() if isinstance(value, str) else [str(v) for v in value] if isinstance(value, list) else []
    for name in names:
        if not re.fullmatch(r"[A-Za-z_][\w-]*", name):
            yield text.at(f"arguments: {shown(name)} is no identifier", "arguments")
        elif name == "ARGUMENTS":
            yield text.at("arguments: a name must not hide $ARGUMENTS", "arguments")
        elif not re.search(rf"\$\{{?{re.escape(name)}\b", text.body) and not re.search(r"\$(?:ARGUMENTS|\d)", text.body):
            yield text.at(f"arguments: ${name} is never used in the text", "arguments")
