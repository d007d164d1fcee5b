"""`command` holds a whole command line.

Why: No such executable.

Bad:

    "command": "npx -y x"

Good:

    "command": "npx", "args": ["-y", "x"]
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from kernel_linter.rule import Diagnostic, Fix
from kernel_linter.servers import McpServer
from kernel_linter.shell import words
from kernel_linter.words import shown

CODE = "MCP011"
SEVERITY = "error"
FIX = "safe"
ON = "server"
SINCE = "0.1.0"


def check(server: McpServer) -> Iterator[Diagnostic]:
    command = server.command.strip()
    if re.search(r"\s", command) and not re.match(r"(?:[A-Za-z]:\\|/|\$\{)[^\s]*\s[^-\s]*[/\\.]", command):
        parts = words(command)
        fix = None
        if len(parts) > 1 and "args" not in server.data:
            node = server.file.node(*server.path, "command")
            fix = (
                server.file.fix_span(
                    (node.start, node.end), f'{json.dumps(parts[0])}, "args": {json.dumps(parts[1:])}', "split it"
                )
                if node
                else None
            )
        elif len(parts) > 1 and isinstance(server.data.get("args"), list):
            first, second = server.file.node(*server.path, "command"), server.file.node(*server.path, "args")
            fix = (
                Fix(
                    "safe",
                    "split it",
                    (
                        server.file.swap((first.start, first.end), json.dumps(parts[0])),
                        server.file.swap((second.start, second.end), json.dumps([*parts[1:], *server.data["args"]])),
                    ),
                )
                if first and second
                else None
            )
        yield server.at(
            f"{shown(server.name)}: command must be one executable; {shown(command)} is a whole command line", "command", fix=fix
        )
