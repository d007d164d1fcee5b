"""A key outside the closed schema.

Why: The server is skipped.

Bad:

    "filetypes": […]

Good:

    —
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import LspServer
from kernel_linter.tables import LSP
from kernel_linter.types import described, fits
from kernel_linter.words import nearest, shown

CODE = "LSP004"
SEVERITY = "error"
FIX = "none"
ON = "lsp"
SINCE = "0.1.0"


def check(server: LspServer) -> Iterator[Diagnostic]:
    for key, value in server.data.items():
        if key not in LSP:
            near = nearest(key, LSP)
            yield server.at(
                f"{shown(server.name)}: unknown key {shown(key)}; the schema is closed and the server is skipped"
                + (f"; did you mean {near}?" if near else ""),
                key,
            )
        elif key not in ("command", "extensionToLanguage", "transport") and not fits(LSP[key], value):
            yield server.at(f"{shown(server.name)}: {key}: expected {described(LSP[key])}, found {shown(value)}", key)
        elif key == "transport" and value not in ("stdio", "socket"):
            yield server.at(f"{shown(server.name)}: transport must be stdio or socket", key)
