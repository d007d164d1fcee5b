"""`url` is empty.

Why: Shown as not configured until a user sets it.

Bad:

    "url": ""

Good:

    userConfig
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import McpServer
from kernel_linter.words import shown

CODE = "MCP016"
SEVERITY = "info"
FIX = "none"
ON = "server"
SINCE = "0.1.0"


def check(server: McpServer) -> Iterator[Diagnostic]:
    if server.data.get("url") == "":
        yield server.at(f"{shown(server.name)}: the url is empty: shown as not configured until a user sets it", "url")
