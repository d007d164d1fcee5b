"""A JSON object in a plugin file has the same key twice.

Why: The last one wins without a word; the first is dead text.

Bad:

    {"name": "a", "name": "b"}

Good:

    {"name": "b"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.words import shown

CODE = "PLG003"
SEVERITY = "warning"
FIX = "none"
ON = "json"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    if file.has_duplicates:
        for key, span in file.index.repeated:
            yield file.at(f"the key {shown(key)} stands twice in one object; the last one wins", span=span)
        if not file.index.repeated:
            yield file.at("an object has a key twice; the last one wins")
