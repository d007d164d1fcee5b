"""A server key with characters outside letters, digits, `_`, `-`, or a reserved name (reserved: error).

Why: The tool name is mangled; reserved ones are skipped.

Bad:

    "google calendar"

Good:

    "google-calendar"
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import McpServer
from kernel_linter.tables import RESERVED_SERVERS
from kernel_linter.words import shown

CODE = "MCP015"
SEVERITY = "warning"
FIX = "none"
ON = "server"
SINCE = "0.1.0"


def check(server: McpServer) -> Iterator[Diagnostic]:
    if server.name in RESERVED_SERVERS:
        yield server.at(
            f"{shown(server.name)}: is a reserved name; the server is skipped",
            severity="error",
            span=server.file.key_span(*server.path),
        )
    elif not re.fullmatch(r"[A-Za-z0-9_-]+", server.name):
        yield server.at(
            f"{shown(server.name)}: letters, digits, '_' and '-' only; others become '_' in the names of its tools",
            span=server.file.key_span(*server.path),
        )
