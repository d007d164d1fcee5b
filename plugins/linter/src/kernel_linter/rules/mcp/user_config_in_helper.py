"""`${user_config.*}` in `headersHelper`.

Why: Refused.

Bad:

    headersHelper with it

Good:

    "headers" with it
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import McpServer
from kernel_linter.words import OPTION_TOKEN, shown

CODE = "MCP014"
SEVERITY = "error"
FIX = "none"
ON = "server"
SINCE = "0.1.0"


def check(server: McpServer) -> Iterator[Diagnostic]:
    if OPTION_TOKEN.search(server.text("headersHelper")):
        yield server.at(
            f"{shown(server.name)}: ${{user_config.*}} is refused in headersHelper; put it into headers", "headersHelper"
        )
