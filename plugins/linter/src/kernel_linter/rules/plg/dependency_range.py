"""`version` of a dependency is not a valid npm range.

Why: `range-conflict` at install.

Bad:

    {"name": "x", "version": "1.x.y.z"}

Good:

    {"name": "x", "version": "~1.2.0"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.semver import is_range
from kernel_linter.source import JsonFile
from kernel_linter.words import shown

CODE = "PLG046"
SEVERITY = "error"
FIX = "none"
ON = "manifest entry"
SINCE = "0.1.0"


def check(target: JsonFile | Entry) -> Iterator[Diagnostic]:
    value = target.object.get("dependencies")
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, dict) and isinstance(item.get("version"), str) and not is_range(item["version"]):
            yield target.at(
                f"dependencies: {shown(item['version'])} is not a version range (range-conflict)",
                "dependencies",
                index,
                "version",
            )
