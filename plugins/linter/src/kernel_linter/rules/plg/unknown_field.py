"""Unknown top-level key. Fix only when one known key is at distance ≤ 2.

Why: It has no effect; hosts older than about 2.1.125 refuse the whole manifest.

Bad:

    {"mcp_servers": {}}

Good:

    {"mcpServers": {}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.tables import ENTRY, MANIFEST
from kernel_linter.words import nearest, shown

CODE = "PLG019"
SEVERITY = "warning"
FIX = "safe"
ON = "manifest"
SINCE = "0.1.0"

OTHERS = ("engines", "bin", "tools", "categories", "main", "scripts", "type", "files", "private")


def check(file: JsonFile) -> Iterator[Diagnostic]:
    for key in file.object:
        if key in ENTRY:
            continue
        near = nearest(key, MANIFEST)
        if near and near not in file.object:
            yield file.at(
                f"{key}: unknown field, ignored; did you mean {near}?",
                key,
                span=file.key_span(key),
                fix=file.rename_key(near, key, message=f"rename it to {near}"),
            )
        elif key in OTHERS:
            yield file.at(f"{key}: unknown field, ignored; it belongs to other kinds of manifest", key, span=file.key_span(key))
        else:
            yield file.at(
                f"{shown(key)}: unknown field, ignored; private data may stand under metadata", key, span=file.key_span(key)
            )
