"""A hooks file is not valid JSON (comments are not allowed).

Why: No hook of the file runs; some hosts drop the plugin.

Bad:

    {"hooks": {} // x

Good:

    {"hooks": {}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile

CODE = "HOK001"
SEVERITY = "error"
FIX = "none"
ON = "hook-file"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    if file.error and not file.problem:
        yield file.at_error(f"is not valid JSON: {file.error}; no hook of this file runs")
