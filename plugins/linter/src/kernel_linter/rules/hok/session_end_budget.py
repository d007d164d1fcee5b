"""A plugin `SessionEnd` handler with a `timeout` above 1.5 s, or that starts network or package work.

Why: The 1.5 s budget is not raised by plugins; the work is cut off.

Bad:

    "timeout": 30

Good:

    start a detached process
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.manifests import number
from kernel_linter.rule import Diagnostic
from kernel_linter.shell import INSTALLS, NETWORK

CODE = "HOK027"
SEVERITY = "warning"
FIX = "none"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    if handler.event == "SessionEnd" and handler.home in ("file", "manifest"):
        value = handler.data.get("timeout")
        if number(value) and value > 1.5:
            yield handler.at(f"timeout: {value} s: all SessionEnd hooks of plugins share 1.5 s; the rest is cut off", "timeout")
        elif re.search(NETWORK, handler.words) or re.search(INSTALLS, handler.words):
            yield handler.at(
                "command: network or package work at SessionEnd is cut off after 1.5 s; start a detached process", "command"
            )
