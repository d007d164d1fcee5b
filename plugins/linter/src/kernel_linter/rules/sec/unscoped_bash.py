"""`allowed-tools` of a skill or command grants `Bash` without a command pattern.

Why: Any command runs without asking while the skill is active, even in untrusted folders.

Bad:

    allowed-tools: Bash

Good:

    allowed-tools: Bash(git *)
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SEC002"
SEVERITY = "warning"
FIX = "none"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for entry in text.granted:
        if entry.name == "Bash" and (entry.specifier is None or entry.specifier in ("", "*", ":*", "**")):
            yield text.at(
                "allowed-tools: Bash without a command pattern: any command runs without asking while this is active",
                "allowed-tools",
            )
            break
