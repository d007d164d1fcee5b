"""The name equals a built-in command or bundled skill.

Why: The bare name runs the built-in.

Bad:

    name: help

Good:

    name: acme-help
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import BUILT_IN_COMMANDS
from kernel_linter.words import shown

CODE = "SKL015"
SEVERITY = "info"
FIX = "none"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.name.lower() in BUILT_IN_COMMANDS:
        yield text.at(
            f"{shown(text.name)} is a built-in command; the bare name runs that one",
            *(["name"] if "name" in text.data and text.kind == "skill" else []),
        )
