"""`if` on an event that is not a tool event.

Why: The handler never runs.

Bad:

    Stop with "if"

Good:

    drop "if"
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import EVENTS, TOOL_EVENTS

CODE = "HOK013"
SEVERITY = "error"
FIX = "none"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    if "if" in handler.data and handler.event in EVENTS and handler.event not in TOOL_EVENTS:
        yield handler.at(f"if: is evaluated on tool events only; on {handler.event} the handler never runs", "if")
