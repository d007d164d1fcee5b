r"""(text) `$1`–`$9` inside shell code of a skill without `argument-hint` or `arguments`.

Why: Replaced as soon as the user types arguments.

Bad:

    VERSION=$1

Good:

    VERSION=\$1
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import line_of

CODE = "SKL042"
SEVERITY = "info"
FIX = "none"
ON = "skill"
SINCE = "0.1.0"

SHELL_FENCE = re.compile(r"^[ \t]*```(?:bash|sh|shell|zsh)[^\n]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)


def check(text: TextFile) -> Iterator[Diagnostic]:
    if "argument-hint" in text.data or "arguments" in text.data or "$ARGUMENTS" in text.body:
        return
    for fence in SHELL_FENCE.finditer(text.text, text.front.body):
        for match in re.finditer(r"(?<![\\$\w'])\$([1-9])\b", fence[1]):
            if "awk" not in line_of(fence[1], match.start()):
                at = fence.start(1) + match.start()
                yield text.at(
                    f"{match[0]} in shell code is replaced as soon as the user types arguments; write \\{match[0]}",
                    span=(at, at + 2),
                )
                break
