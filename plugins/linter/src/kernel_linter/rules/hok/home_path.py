"""A command that reaches into `~/.claude/…` for the plugin's own files.

Why: The install path is versioned and may be elsewhere.

Bad:

    ~/.claude/plugins/x/run.sh

Good:

    ${CLAUDE_PLUGIN_ROOT}/run.sh
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic

CODE = "HOK033"
SEVERITY = "warning"
FIX = "none"
ON = "handler"
SINCE = "0.1.0"

HOME = re.compile(r"(?:~|\$\{?HOME\}?|%USERPROFILE%)[/\\]\.claude[/\\](?:plugins|hooks|skills|scripts|commands|agents)[/\\]")


def check(handler: Handler) -> Iterator[Diagnostic]:
    if handler.home in ("file", "manifest") and (found := HOME.search(handler.words)):
        yield handler.at(
            f"command: reaches into {found[0]}; the install path is versioned; use ${{CLAUDE_PLUGIN_ROOT}}", "command"
        )
