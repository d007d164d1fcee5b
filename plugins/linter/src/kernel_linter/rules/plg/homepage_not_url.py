"""`homepage` does not parse as an absolute URL.

Why: The plugin does not load.

Bad:

    {"homepage": "example.com"}

Good:

    {"homepage": "https://example.com"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.words import is_url, shown

CODE = "PLG014"
SEVERITY = "error"
FIX = "none"
ON = "manifest entry"
SINCE = "0.1.0"


def check(target: JsonFile | Entry) -> Iterator[Diagnostic]:
    value = target.object.get("homepage")
    if isinstance(value, str) and not is_url(value):
        yield target.at(f"homepage: {shown(value)} is not an absolute URL (https://...)", "homepage")
