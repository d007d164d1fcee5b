"""`timeout` of 1000 or more. Fix: divide by 1000.

Why: Seconds, not milliseconds: a hang blocks for hours.

Bad:

    "timeout": 5000

Good:

    "timeout": 5
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.manifests import number
from kernel_linter.rule import Diagnostic

CODE = "HOK011"
SEVERITY = "warning"
FIX = "unsafe"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    value = handler.data.get("timeout")
    if number(value) and value >= 1000:
        yield handler.at(
            f"timeout: {value} seconds; it counts seconds, not milliseconds",
            "timeout",
            fix=handler.set_value("timeout", value / 1000 if value % 1000 else value // 1000, "divide by 1000", "unsafe"),
        )
