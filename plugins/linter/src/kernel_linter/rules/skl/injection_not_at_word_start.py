"""(text) `` !`cmd` `` directly after another character.

Why: Stays literal; the command never runs.

Bad:

    BRANCH=!`git branch`

Good:

    BRANCH: !`git branch`
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL043"
SEVERITY = "warning"
FIX = "none"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for start, end in text.glued_injections:
        yield text.at(
            "a command is injected at a line start or behind white space only; this one stays literal", span=(start, end)
        )
