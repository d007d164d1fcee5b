"""`tools` in a skill (the field of agents). Fix: rename to `allowed-tools`.

Why: No grant: every call prompts, injected commands abort.

Bad:

    tools: Bash(git *)

Good:

    allowed-tools: Bash(git *)
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL017"
SEVERITY = "warning"
FIX = "safe"
ON = "skill"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if "tools" in text.data:
        yield text.at(
            "tools: is the field of agents; a skill grants with allowed-tools",
            "tools",
            fix=text.rename_field("tools", "allowed-tools", "rename it to allowed-tools"),
        )
