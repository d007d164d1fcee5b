"""`plugin.json` is not valid JSON (comments, trailing commas, empty file).

Why: The plugin does not load at all.

Bad:

    {"name": "fmt",}

Good:

    {"name": "fmt"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile

CODE = "PLG001"
SEVERITY = "error"
FIX = "none"
ON = "manifest"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    if file.error and not file.problem:
        yield file.at_error(f"is not valid JSON: {file.error}; the plugin does not load")
