"""`keywords` is a string, or holds non-strings. Fix: split on commas.

Why: The plugin does not load.

Bad:

    {"keywords": "a, b"}

Good:

    {"keywords": ["a", "b"]}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.words import shown

CODE = "PLG013"
SEVERITY = "error"
FIX = "safe"
ON = "manifest entry"
SINCE = "0.1.0"


def check(target: JsonFile | Entry) -> Iterator[Diagnostic]:
    value = target.object.get("keywords")
    if isinstance(value, str):
        words = [w.strip() for w in value.split(",") if w.strip()]
        yield target.at(
            "keywords: must be a list of texts, found text",
            "keywords",
            fix=target.set_value(words, "keywords", message="split at the commas"),
        )
    elif "keywords" in target.object and not (isinstance(value, list) and all(isinstance(w, str) for w in value)):
        yield target.at(f"keywords: must be a list of texts, found {shown(value)}", "keywords")
