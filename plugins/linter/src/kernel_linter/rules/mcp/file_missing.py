"""`${CLAUDE_PLUGIN_ROOT}/…` names a file not in the plugin (often an unbuilt `dist/`).

Why: The server does not start.

Bad:

    …/dist/index.js (not committed)

Good:

    commit it, or build into the data directory
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import McpServer
from kernel_linter.shell import plugin_paths
from kernel_linter.words import shown

CODE = "MCP009"
SEVERITY = "error"
FIX = "none"
ON = "server"
SINCE = "0.1.0"


def check(server: McpServer) -> Iterator[Diagnostic]:
    if not server.plugin:
        return
    for pointer, value in server.texts():
        if pointer[:1] not in (("command",), ("args",)):
            continue
        for path, _ in plugin_paths(value):
            if not server.plugin.exists(path) and not re.search(r"(?:^|/)(?:node_modules|\.venv|venv)(?:/|$)", path):
                yield server.at(f"{shown(server.name)}: there is no {path} in the plugin", *pointer, about=path)
