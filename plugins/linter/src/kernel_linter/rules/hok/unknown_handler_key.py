"""Unknown key in a handler (`description`, `environment`, `continueOnError`).

Why: No effect.

Bad:

    "environment": {…}

Good:

    set it in the script
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import HANDLER_COMMON, HANDLER_TYPES
from kernel_linter.words import nearest, shown

CODE = "HOK009"
SEVERITY = "info"
FIX = "none"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    if handler.type in HANDLER_TYPES:
        needs, more = HANDLER_TYPES[handler.type]
        for key in handler.data:
            if key not in needs and key not in more and key not in HANDLER_COMMON:
                near = nearest(key, (*needs, *more, *HANDLER_COMMON))
                yield handler.at(
                    f"{shown(key)}: has no effect in a {handler.type} handler" + (f"; did you mean {near}?" if near else ""), key
                )
