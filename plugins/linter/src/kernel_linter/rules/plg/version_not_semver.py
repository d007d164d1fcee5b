"""`version` is not MAJOR.MINOR.PATCH.

Why: Dependency ranges and tags cannot match it.

Bad:

    {"version": "v1"}

Good:

    {"version": "1.0.0"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.semver import is_version
from kernel_linter.source import JsonFile
from kernel_linter.words import shown

CODE = "PLG016"
SEVERITY = "warning"
FIX = "none"
ON = "manifest entry"
SINCE = "0.1.0"


def check(target: JsonFile | Entry) -> Iterator[Diagnostic]:
    value = target.object.get("version")
    if isinstance(value, str) and not is_version(value):
        yield target.at(f"version: {shown(value)} is not MAJOR.MINOR.PATCH", "version")
