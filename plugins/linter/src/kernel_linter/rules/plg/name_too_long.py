"""`name` is longer than 64 characters.

Why: Command names become unusable; one desktop client drops names over 128.

Bad:

    {"name": "a-very-…-long-name"}

Good:

    {"name": "short-name"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile

CODE = "PLG009"
SEVERITY = "warning"
FIX = "none"
ON = "manifest"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    name = file.object.get("name")
    if isinstance(name, str) and len(name) > 64:
        yield file.at(f"name: {len(name)} characters; at most 64 are usable", "name")
