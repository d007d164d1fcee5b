"""`url` without `type`. Fix: `http`.

Why: Read as stdio and skipped.

Bad:

    {"url": "https://x"}

Good:

    {"type": "http", "url": "https://x"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import McpServer
from kernel_linter.words import shown

CODE = "MCP004"
SEVERITY = "error"
FIX = "safe"
ON = "server"
SINCE = "0.1.0"


def check(server: McpServer) -> Iterator[Diagnostic]:
    if isinstance(server.data.get("url"), str) and "type" not in server.data and "command" not in server.data:
        yield server.at(
            f"{shown(server.name)}: a url without type is read as stdio and skipped",
            "url",
            fix=server.file.add_member("type", "http", *server.path, message="add type http"),
        )
