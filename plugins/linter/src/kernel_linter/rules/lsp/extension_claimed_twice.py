"""Two servers claim the same extension.

Why: The second never starts.

Bad:

    both ".ts"

Good:

    one
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "LSP005"
SEVERITY = "warning"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    claimed: dict[str, str] = {}
    for server in plugin.lsp:
        extensions = server.data.get("extensionToLanguage")
        for key in extensions if isinstance(extensions, dict) else ():
            other = claimed.setdefault(key, server.name)
            if other != server.name:
                yield server.at(
                    f"{shown(server.name)}: {key} is claimed by {shown(other)} already; this server never starts for it",
                    "extensionToLanguage",
                    key,
                )
