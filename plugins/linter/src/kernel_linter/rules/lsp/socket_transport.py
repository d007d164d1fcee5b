"""`transport: socket`.

Why: Accepted, but stdio is used.

Bad:

    "socket"

Good:

    "stdio"
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import LspServer
from kernel_linter.words import shown

CODE = "LSP006"
SEVERITY = "info"
FIX = "none"
ON = "lsp"
SINCE = "0.1.0"


def check(server: LspServer) -> Iterator[Diagnostic]:
    if server.data.get("transport") == "socket":
        yield server.at(f"{shown(server.name)}: transport socket is accepted, but stdio is used", "transport")
