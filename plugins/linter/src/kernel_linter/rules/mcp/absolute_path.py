"""A path into one person's home directory.

Why: Exists on one machine.

Bad:

    /home/<name>/app/main.js

Good:

    ${CLAUDE_PLUGIN_ROOT}/…
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import McpServer
from kernel_linter.words import shown

CODE = "MCP008"
SEVERITY = "error"
FIX = "none"
ON = "server"
SINCE = "0.1.0"

HOME = re.compile(r"(?:^|[\s=:\"'])(/(?:home|Users)/[\w.-]+/\S*|[A-Za-z]:\\Users\\[^\\\s]+\\\S*|/root/\S+)")


def check(server: McpServer) -> Iterator[Diagnostic]:
    for pointer, value in server.texts():
        if (found := HOME.search(value)) and not re.search(
            r"/(?:home|Users)/(?:user|username|you|your-?name|me|USER|<)", found[1]
        ):
            yield server.at(f"{shown(server.name)}: {shown(found[1])} exists on one machine only", *pointer)
