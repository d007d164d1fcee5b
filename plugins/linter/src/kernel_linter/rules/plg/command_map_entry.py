"""An object-form `commands` entry has neither or both of `source` and `content`.

Why: The manifest is rejected.

Bad:

    {"commands": {"a": {}}}

Good:

    {"commands": {"a": {"source": "./a.md"}}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile

CODE = "PLG050"
SEVERITY = "error"
FIX = "none"
ON = "manifest entry"
SINCE = "0.1.0"


def check(target: JsonFile | Entry) -> Iterator[Diagnostic]:
    value = target.object.get("commands")
    for name, item in value.items() if isinstance(value, dict) else ():
        if not isinstance(item, dict):
            yield target.at(f"commands.{name}: must be an object with source or content", "commands", name)
        elif ("source" in item) == ("content" in item):
            yield target.at(f"commands.{name}: needs exactly one of source and content", "commands", name)
