"""`type` missing or not command, http, mcp_tool, prompt, agent.

Why: The whole file is rejected.

Bad:

    {"command": "x"}

Good:

    {"type": "command", "command": "x"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import HANDLER_TYPES
from kernel_linter.words import shown

CODE = "HOK007"
SEVERITY = "error"
FIX = "none"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    if "type" not in handler.data:
        yield handler.at(f"type: required: one of {', '.join(HANDLER_TYPES)}")
    elif handler.type not in HANDLER_TYPES:
        yield handler.at(f"type: {shown(handler.type)} is none of {', '.join(HANDLER_TYPES)}", "type")
