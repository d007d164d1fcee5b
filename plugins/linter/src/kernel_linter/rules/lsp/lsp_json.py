"""`.lsp.json` is not a JSON object of servers.

Why: No language server.

Bad:

    []

Good:

    {"go": {…}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.words import shown

CODE = "LSP001"
SEVERITY = "error"
FIX = "none"
ON = "lsp-file"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    if file.problem:
        return
    if file.error:
        yield file.at_error(f"is not valid JSON: {file.error}")
    elif not isinstance(file.data, dict):
        yield file.at("must hold one JSON object of servers")
    else:
        for name, value in file.object.items():
            if not isinstance(value, dict) and not name.startswith("$"):
                yield file.at(f"{shown(name)}: must be an object, found {shown(value)}", name)
