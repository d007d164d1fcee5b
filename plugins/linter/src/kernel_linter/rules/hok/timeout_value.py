"""`timeout` is not a number above 0.

Why: The whole file is rejected.

Bad:

    "timeout": "30"

Good:

    "timeout": 30
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.manifests import number
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "HOK010"
SEVERITY = "error"
FIX = "none"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    value = handler.data.get("timeout")
    if "timeout" in handler.data and not (number(value) and value > 0):
        yield handler.at(f"timeout: must be a number of seconds above 0, found {shown(value)}", "timeout")
