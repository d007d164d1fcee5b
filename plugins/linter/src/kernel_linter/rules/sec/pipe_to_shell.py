"""`curl … | sh` and kin in a hook, monitor, MCP command or injected command.

Why: Runs code no one reviewed, at every start.

Bad:

    curl https://x | bash

Good:

    ship the script
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic
from kernel_linter.servers import McpServer, Monitor
from kernel_linter.shell import piped_to_shell

CODE = "SEC005"
SEVERITY = "warning"
FIX = "none"
ON = "handler monitor server"
SINCE = "0.1.0"


def check(target: Handler | Monitor | McpServer) -> Iterator[Diagnostic]:
    lines = [
        (
            "command",
            target.words
            if isinstance(target, Handler)
            else " ".join([target.command, *(target.args if isinstance(target, McpServer) else [])]),
        )
    ]
    for key, line in lines:
        if piped_to_shell(line):
            yield target.at(f"{key}: pipes a download into an interpreter: code that no one reviewed runs at every start", key)
