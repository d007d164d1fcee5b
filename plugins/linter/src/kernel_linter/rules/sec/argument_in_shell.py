"""An injected command contains `$ARGUMENTS`, `$N` or a named argument.

Why: Arguments are pasted into a shell line: command injection.

Bad:

    !`gh pr view $0`

Good:

    let the model call the tool, or a script that reads stdin
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SEC012"
SEVERITY = "error"
FIX = "none"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    names = text.data.get("arguments")
    words_ = names.split() if isinstance(names, str) else [str(n) for n in names] if isinstance(names, list) else []
    TOKENS = re.compile(r"\$(?:ARGUMENTS|\d)" + "".join(rf"|\$\{{?{re.escape(w)}\b" for w in words_ if w))
    for command, offset in text.injections:
        plain = re.sub(r"\bawk\b\s+(?:-\w+\s+\S+\s+)?'[^']*'", "awk", command)
        if found := TOKENS.search(plain):
            yield text.at(
                f"{found[0]} is pasted into a shell line: whoever writes the arguments runs commands",
                span=(offset, offset + len(command)),
            )
