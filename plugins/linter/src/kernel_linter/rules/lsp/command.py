"""`command` missing, empty or with a space.

Why: The server is skipped.

Bad:

    "command": "gopls serve"

Good:

    "command": "gopls", "args": ["serve"]
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import LspServer
from kernel_linter.words import shown

CODE = "LSP002"
SEVERITY = "error"
FIX = "none"
ON = "lsp"
SINCE = "0.1.0"


def check(server: LspServer) -> Iterator[Diagnostic]:
    value = server.data.get("command")
    if not isinstance(server.raw, dict):
        return
    if not isinstance(value, str) or not value.strip():
        yield server.at(
            f"{shown(server.name)}: command is required: one executable", *(["command"] if "command" in server.data else [])
        )
    elif " " in value.strip() and not value.startswith(("/", "${")):
        yield server.at(f"{shown(server.name)}: command {shown(value)} must be one executable; put the rest into args", "command")
