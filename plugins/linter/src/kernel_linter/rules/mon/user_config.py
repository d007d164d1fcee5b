"""`${user_config.*}` in a monitor command.

Why: Refused.

Bad:

    tail ${user_config.log}

Good:

    read the file name in the script
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import Monitor
from kernel_linter.words import OPTION_TOKEN

CODE = "MON002"
SEVERITY = "error"
FIX = "none"
ON = "monitor"
SINCE = "0.1.0"


def check(monitor: Monitor) -> Iterator[Diagnostic]:
    if found := OPTION_TOKEN.search(monitor.command):
        yield monitor.at(f"command: {found[0]} is refused in a monitor; read it in the script", "command")
