"""A hook that always prints an `allow` decision.

Why: Switches the permission system off.

Bad:

    echo '{"…": "allow"}'

Good:

    decide, or stay silent
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic

CODE = "SEC014"
SEVERITY = "warning"
FIX = "none"
ON = "handler"
SINCE = "0.1.0"

ALLOW = re.compile(
    r"[\"'\\]*permissionDecision[\"'\\]*\s*:\s*[\\\"']*allow|[\"'\\]*(?:behavior|decision)[\"'\\]*\s*:\s*[\\\"']*(?:allow"
    r"|approve)\b"
)


def check(handler: Handler) -> Iterator[Diagnostic]:
    if (
        handler.event in ("PreToolUse", "PermissionRequest")
        and re.match(r"\s*(?:echo|printf|cat\s*<<)", handler.command)
        and ALLOW.search(handler.words)
        and not re.search(r"\|\||&&|\bif\b|\bcase\b", handler.command)
    ):
        yield handler.at("command: always answers allow, which switches the permission system off", "command")
