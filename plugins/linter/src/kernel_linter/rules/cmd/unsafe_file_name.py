"""A command file name with spaces, upper case or characters that cannot be typed after `/`.

Why: Unreachable in completion.

Bad:

    commands/My Cmd.md

Good:

    commands/my-cmd.md
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import STRAY, shown

CODE = "CMD007"
SEVERITY = "warning"
FIX = "none"
ON = "command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if (
        not re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", text.path.stem)
        and text.path.name.lower() not in STRAY
        and text.path.name != "SKILL.md"
    ):
        yield text.at(
            f"{shown(text.path.name)}: a name that cannot be typed after '/': use lower-case letters, digits and hyphens"
        )
