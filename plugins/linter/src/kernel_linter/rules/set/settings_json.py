"""A settings file is not a JSON object (comments and trailing commas are not allowed).

Why: The whole file is dropped, deny rules included.

Bad:

    {"model": "opus",}

Good:

    {"model": "opus"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile

CODE = "SET001"
SEVERITY = "error"
FIX = "none"
ON = "settings"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    if file.error and not file.problem:
        yield file.at_error(f"is not valid JSON: {file.error}; the whole file is dropped")
    elif not file.problem and not isinstance(file.data, dict):
        yield file.at("must hold one JSON object; the whole file is dropped")
