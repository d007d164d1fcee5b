"""`shell` not bash or powershell.

Why: Rejected.

Bad:

    "shell": "zsh"

Good:

    "shell": "bash"
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import SHELLS
from kernel_linter.words import shown

CODE = "HOK032"
SEVERITY = "error"
FIX = "none"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    value = handler.data.get("shell")
    if "shell" in handler.data and value not in SHELLS:
        yield handler.at(f"shell: {shown(value)} is none of {', '.join(SHELLS)}", "shell")
