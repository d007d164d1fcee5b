"""An `env` or header value is not a string.

Why: The server is rejected.

Bad:

    "PORT": 80

Good:

    "PORT": "80"
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import McpServer
from kernel_linter.words import shown

CODE = "MCP012"
SEVERITY = "error"
FIX = "safe"
ON = "server"
SINCE = "0.1.0"


def check(server: McpServer) -> Iterator[Diagnostic]:
    for key in ("env", "headers"):
        values = server.data.get(key)
        if values is not None and not isinstance(values, dict):
            yield server.at(f"{shown(server.name)}: {key} must be an object of texts", key)
        for name, value in values.items() if isinstance(values, dict) else ():
            if not isinstance(value, str):
                text = json.dumps(value) if isinstance(value, bool | int | float) else None
                yield server.at(
                    f"{shown(server.name)}: {key}.{name} must be text, found {shown(value)}",
                    key,
                    name,
                    fix=server.file.set_value(text, *server.path, key, name, message="quote it") if text else None,
                )
