"""`args` is set and `command` holds white space.

Why: No such executable.

Bad:

    "command": "node x.js", "args": ["-v"]

Good:

    "command": "node", "args": ["x.js", "-v"]
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.hooks_help import split_command
from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic
from kernel_linter.shell import words
from kernel_linter.words import shown

CODE = "HOK028"
SEVERITY = "error"
FIX = "safe"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    if (
        handler.args is not None
        and re.search(r"\s", handler.command.strip())
        and not (handler.plugin and "${" in handler.command.split()[0])
    ):
        parts = words(handler.command)
        yield handler.at(
            f"command: with args it is one executable; {shown(handler.command)} holds white space",
            "command",
            fix=split_command(handler, parts),
        )
