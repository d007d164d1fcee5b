"""`${user_config.*}` in a shell-form command.

Why: Refused (≥ 2.1.207). Use `args`, or `$CLAUDE_PLUGIN_OPTION_<KEY>`.

Bad:

    x ${user_config.url}

Good:

    "command": "x", "args": ["${user_config.url}"]
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic
from kernel_linter.words import OPTION_TOKEN

CODE = "HOK025"
SEVERITY = "error"
FIX = "unsafe"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    if handler.shell_form and (found := OPTION_TOKEN.search(handler.command)):
        name = found[1].upper()
        yield handler.at(
            f"command: {found[0]} is refused in a shell line; use args, or $CLAUDE_PLUGIN_OPTION_{name}",
            "command",
            fix=handler.set_value(
                "command",
                OPTION_TOKEN.sub(lambda m: f"$CLAUDE_PLUGIN_OPTION_{m[1].upper()}", handler.command),
                "read it from the environment",
                "unsafe",
            ),
        )
