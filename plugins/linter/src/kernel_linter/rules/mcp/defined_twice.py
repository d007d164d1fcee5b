"""The same server key in `.mcp.json` and in the manifest.

Why: Which one wins is not documented.

Bad:

    both define "db"

Good:

    one place
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.servers import McpServer
from kernel_linter.words import shown

CODE = "MCP017"
SEVERITY = "warning"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    first: dict[str, McpServer] = {}
    for server in plugin.servers:
        other = first.setdefault(server.name, server)
        if other is not server and other.file is not server.file:
            yield server.at(f"{shown(server.name)}: is defined in {other.file.shown} too; which one wins is not documented")
