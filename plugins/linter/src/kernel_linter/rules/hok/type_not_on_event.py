"""`prompt` or `agent` on an event that does not take it; `http` on `SessionStart` or `Setup`.

Why: Never runs.

Bad:

    prompt on PostCompact

Good:

    command on PostCompact
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import EVENTS, HANDLER_TYPES

CODE = "HOK012"
SEVERITY = "error"
FIX = "none"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    takes = EVENTS.get(handler.event, ("", ()))[1]
    if takes and handler.type in HANDLER_TYPES and handler.type not in takes:
        yield handler.at(f"type: {handler.event} does not take the type {handler.type}; it takes {', '.join(takes)}", "type")
