"""`type` not stdio, http, streamable-http, sse, ws.

Why: Skipped.

Bad:

    "type": "rest"

Good:

    "type": "http"
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import McpServer
from kernel_linter.tables import MCP_TYPES
from kernel_linter.words import shown

CODE = "MCP005"
SEVERITY = "error"
FIX = "none"
ON = "server"
SINCE = "0.1.0"


def check(server: McpServer) -> Iterator[Diagnostic]:
    value = server.data.get("type")
    if "type" in server.data and value not in MCP_TYPES and value != "sdk":
        yield server.at(f"{shown(server.name)}: type {shown(value)} is none of {', '.join(MCP_TYPES)}", "type")
