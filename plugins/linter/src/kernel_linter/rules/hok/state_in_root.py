"""A command or script that writes under `${CLAUDE_PLUGIN_ROOT}` (redirects, `npm install` there).

Why: Lost at the next update; may be read-only.

Bad:

    > ${CLAUDE_PLUGIN_ROOT}/state

Good:

    > ${CLAUDE_PLUGIN_DATA}/state
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic

CODE = "HOK034"
SEVERITY = "warning"
FIX = "none"
ON = "handler"
SINCE = "0.1.0"

WRITES = re.compile(
    r"(?<![\d&-])>{1,2}\s*[\"']?\$\{CLAUDE_PLUGIN_ROOT\}|\b(?:tee|touch"
    r"|mkdir(?:\s+-p)?)\s+(?:-a\s+)?[\"']?\$\{CLAUDE_PLUGIN_ROOT\}"
    r"|\bcd\s+[\"']?\$\{CLAUDE_PLUGIN_ROOT\}[^;&|]*(?:&&|;)\s*(?:npm|pnpm|yarn|bun|pip3?|uv)\s+(?:install|i|ci|add|sync)\b"
    r"|--prefix[ =][\"']?\$\{CLAUDE_PLUGIN_ROOT\}|-t\s+[\"']?\$\{CLAUDE_PLUGIN_ROOT\}"
)


def check(handler: Handler) -> Iterator[Diagnostic]:
    if WRITES.search(handler.words):
        yield handler.at(
            "command: writes below the plugin root, which is lost at the next update; use ${CLAUDE_PLUGIN_DATA}", "command"
        )
