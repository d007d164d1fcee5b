"""A known field has the wrong type (see the contract, 3.1 and 3.2). More exact rules win over this one.

Why: The plugin does not load.

Bad:

    {"name": "x", "defaultEnabled": "no"}

Good:

    {"name": "x", "defaultEnabled": false}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.tables import ENTRY, MANIFEST
from kernel_linter.types import described, fits
from kernel_linter.words import shown

CODE = "PLG010"
SEVERITY = "error"
FIX = "none"
ON = "manifest entry"
SINCE = "0.1.0"

EXACT = ("name", "author", "keywords", "source", "dependencies", "userConfig", "channels")
"""Fields with rules of their own."""
IGNORED = ("metadata", "experimental")


def check(target: JsonFile | Entry) -> Iterator[Diagnostic]:
    table = MANIFEST if isinstance(target, JsonFile) else ENTRY
    for key, value in target.object.items():
        word = table.get(key)
        if key in IGNORED and not isinstance(value, dict):
            yield target.at(f"{key}: must be an object; it is ignored", key, severity="warning")
        elif key == "repository" and isinstance(value, dict):
            continue
        elif word and key not in EXACT and not fits(word, value):
            yield target.at(f"{key}: Invalid input: expected {described(word)}, found {shown(value)}", key)
        elif key in ("userConfig", "channels") and not isinstance(value, dict if key == "userConfig" else list):
            yield target.at(f"{key}: Invalid input: expected {described(table[key])}, found {shown(value)}", key)
