"""`type: sse`.

Why: Deprecated transport.

Bad:

    "type": "sse"

Good:

    "type": "http"
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import McpServer
from kernel_linter.words import shown

CODE = "MCP006"
SEVERITY = "info"
FIX = "none"
ON = "server"
SINCE = "0.1.0"


def check(server: McpServer) -> Iterator[Diagnostic]:
    if server.data.get("type") == "sse":
        yield server.at(f"{shown(server.name)}: the transport sse is deprecated; use http", "type")
