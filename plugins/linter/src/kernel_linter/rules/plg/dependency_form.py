"""`dependencies` is not a list of strings or `{name, version?, marketplace?}` objects; names with spaces or two `@`.

Why: The manifest is rejected.

Bad:

    {"dependencies": {"x": "^1"}}

Good:

    {"dependencies": [{"name": "x", "version": "^1.0"}]}
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.words import shown

CODE = "PLG045"
SEVERITY = "error"
FIX = "none"
ON = "manifest entry"
SINCE = "0.1.0"

NAME = re.compile(r"[^\s@]+(@[^\s@]+)?")


def check(target: JsonFile | Entry) -> Iterator[Diagnostic]:
    value = target.object.get("dependencies")
    if "dependencies" not in target.object:
        return
    if not isinstance(value, list):
        yield target.at(f"dependencies: must be a list of names or objects, found {shown(value)}", "dependencies")
        return
    for index, item in enumerate(value):
        name = item.get("name") if isinstance(item, dict) else item
        if not isinstance(name, str) or not NAME.fullmatch(name):
            yield target.at(
                f"dependencies: {shown(item)} is no name, name@marketplace, nor an object with such a name", "dependencies", index
            )
        elif isinstance(item, dict):
            for key in ("version", "marketplace"):
                if key in item and not isinstance(item[key], str):
                    yield target.at(f"dependencies: {key} must be text", "dependencies", index, key)
