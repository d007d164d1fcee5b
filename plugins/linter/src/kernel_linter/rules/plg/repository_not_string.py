"""`repository` is an object (npm style). Fix: take its `url`.

Why: The plugin does not load.

Bad:

    {"repository": {"type": "git", "url": "https://x/y"}}

Good:

    {"repository": "https://x/y"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile

CODE = "PLG012"
SEVERITY = "error"
FIX = "safe"
ON = "manifest entry"
SINCE = "0.1.0"


def check(target: JsonFile | Entry) -> Iterator[Diagnostic]:
    value = target.object.get("repository")
    if isinstance(value, dict):
        url = value.get("url")
        yield target.at(
            "repository: must be text, not an object",
            "repository",
            fix=target.set_value(url, "repository", message="keep its url") if isinstance(url, str) else None,
        )
