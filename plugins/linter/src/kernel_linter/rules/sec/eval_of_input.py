"""A hook command that evaluates tool input (`eval`, `bash -c "$(jq …)"`).

Why: Tool input is attacker-influenced.

Bad:

    eval "$(jq -r .tool_input.command)"

Good:

    pass it as data
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic

CODE = "SEC013"
SEVERITY = "warning"
FIX = "none"
ON = "handler"
SINCE = "0.1.0"

EVAL = re.compile(
    r"\beval\s+[\"']?\$\(?[^;]*(?:jq|tool_input|stdin|cat\b|read\b)|\b(?:ba|z)?sh\s+-c\s+[\"']?\$\([^)]*(?:jq|tool_input|cat)\b|"
    r"jq\s[^|]*tool_input[^|]*\|\s*(?:xargs\s+(?:-\S+\s+)*)?(?:ba|z)?sh\b|\beval\s+[\"']?\$\{?(?:INPUT|input|CMD|cmd|COMMAND)\b"
)


def check(handler: Handler) -> Iterator[Diagnostic]:
    if EVAL.search(handler.words):
        yield handler.at("command: evaluates tool input, which others may have written; pass it as data", "command")
