"""`extensionToLanguage` missing, empty, or a key without a leading dot. Fix: add the dot.

Why: The server is skipped.

Bad:

    {"go": "go"}

Good:

    {".go": "go"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import LspServer
from kernel_linter.words import shown

CODE = "LSP003"
SEVERITY = "error"
FIX = "safe"
ON = "lsp"
SINCE = "0.1.0"


def check(server: LspServer) -> Iterator[Diagnostic]:
    value = server.data.get("extensionToLanguage")
    if not isinstance(server.raw, dict):
        return
    if not isinstance(value, dict) or not value:
        yield server.at(
            f'{shown(server.name)}: extensionToLanguage is required: {{".go": "go"}}',
            *(["extensionToLanguage"] if "extensionToLanguage" in server.data else []),
        )
        return
    for key, language in value.items():
        if not key.startswith("."):
            yield server.at(
                f"{shown(server.name)}: the extension {shown(key)} must start with a dot",
                "extensionToLanguage",
                key,
                fix=server.file.rename_key(f".{key}", *server.path, "extensionToLanguage", key, message="add the dot")
                if f".{key}" not in value
                else None,
            )
        elif not isinstance(language, str) or not language:
            yield server.at(f"{shown(server.name)}: {key}: the language must be a non-empty text", "extensionToLanguage", key)
