"""`$VAR` without braces in a config value.

Why: Only `${VAR}` is expanded.

Bad:

    "$CLAUDE_PLUGIN_ROOT/x"

Good:

    "${CLAUDE_PLUGIN_ROOT}/x"
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.hooks_help import shell_line
from kernel_linter.rule import Diagnostic
from kernel_linter.servers import McpServer
from kernel_linter.words import shown

CODE = "MCP010"
SEVERITY = "error"
FIX = "safe"
ON = "server"
SINCE = "0.1.0"

BARE = re.compile(r"(?<![\\$\w{])\$([A-Z][A-Z0-9_]{2,})\b")


def check(server: McpServer) -> Iterator[Diagnostic]:
    for pointer, value in server.texts():
        if pointer[:1] == ("headersHelper",) or shell_line(server, pointer):
            continue
        if found := BARE.search(value):
            yield server.at(
                f"{shown(server.name)}: ${found[1]} is not expanded; write ${{{found[1]}}}",
                *pointer,
                fix=server.file.set_value(BARE.sub(r"${\1}", value), *server.path, *pointer, message="add the braces"),
            )
