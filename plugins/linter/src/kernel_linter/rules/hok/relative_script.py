r"""A script path relative to the working directory (`./scripts/x.sh`, `node hooks/x.js`).

Why: Resolved in the user's project, not in the plugin.

Bad:

    "command": "./scripts/x.sh"

Good:

    "command": "\"${CLAUDE_PLUGIN_ROOT}\"/scripts/x.sh"
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic
from kernel_linter.shell import commands, relative_script
from kernel_linter.words import shown

CODE = "HOK023"
SEVERITY = "error"
FIX = "unsafe"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    if not handler.command or handler.home in ("settings", "skill"):
        return
    lines = [[handler.command, *handler.args]] if handler.args is not None else list(commands(handler.command))
    for line in lines[:1]:
        if found := relative_script(line):
            fix = (
                handler.set_value(
                    "command",
                    handler.command.replace(found, f'"${{CLAUDE_PLUGIN_ROOT}}"/{found.removeprefix("./")}', 1),
                    "start at the plugin root",
                    "unsafe",
                )
                if handler.args is None and not found.startswith("..")
                else None
            )
            yield handler.at(
                f"command: {shown(found)} is looked for in the user's project, not in the plugin", "command", fix=fix
            )
