"""`README.md`, `CLAUDE.md`, `INDEX.md`, `CHANGELOG.md` under a commands folder.

Why: Becomes a command.

Bad:

    commands/README.md

Good:

    docs/commands.md
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import STRAY

CODE = "CMD004"
SEVERITY = "warning"
FIX = "none"
ON = "command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.path.name.lower() in STRAY and (text.in_plugin or text.path.parent.name == "commands"):
        yield text.at(f"{text.path.name}: becomes a command; move documentation elsewhere")
