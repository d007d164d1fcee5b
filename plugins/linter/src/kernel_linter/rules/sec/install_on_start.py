"""A `SessionStart` or `Setup` hook that installs packages into the plugin root or without a lock file.

Why: Network and code at each start; writes are lost at update.

Bad:

    npm install in the root

Good:

    lock file, data directory, only when changed
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic
from kernel_linter.shell import INSTALLS, LOCKED
from kernel_linter.words import shown

CODE = "SEC011"
SEVERITY = "warning"
FIX = "none"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    if handler.event in ("SessionStart", "Setup") and (found := INSTALLS.search(handler.words)):
        in_data = "CLAUDE_PLUGIN_DATA" in handler.words
        if not (LOCKED.search(handler.words) and in_data):
            yield handler.at(
                f"command: {shown(found[0].strip())} installs packages at every start; use a lock file and "
                f"${{CLAUDE_PLUGIN_DATA}}, when changed",
                "command",
            )
