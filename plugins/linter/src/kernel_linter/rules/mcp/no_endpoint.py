"""A server with neither `command` nor `url`.

Why: Skipped.

Bad:

    {"db": {}}

Good:

    {"db": {"command": "db-mcp"}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import McpServer
from kernel_linter.words import shown

CODE = "MCP003"
SEVERITY = "error"
FIX = "none"
ON = "server"
SINCE = "0.1.0"


def check(server: McpServer) -> Iterator[Diagnostic]:
    if not isinstance(server.raw, dict):
        yield server.at(f"{shown(server.name)}: must be an object, found {shown(server.raw)}")
    elif "command" not in server.data and "url" not in server.data:
        yield server.at(f"{shown(server.name)}: needs a command or a url")
    elif "command" in server.data and not server.command.strip():
        yield server.at(f"{shown(server.name)}: command must be a non-empty text", "command")
