"""`relevance` without a signal, unknown keys, hosts with scheme or port, values over the limits.

Why: The suggestion never shows, or the entry is refused.

Bad:

    {"hosts": ["https://x.com"]}

Good:

    {"hosts": ["x.com"]}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.markets import wrong_relevance
from kernel_linter.rule import Diagnostic

CODE = "MKT028"
SEVERITY = "error"
FIX = "none"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    value = entry.data.get("relevance")
    if value is None:
        return
    if not isinstance(value, dict):
        yield entry.at("relevance: must be an object; it is ignored", "relevance", severity="warning")
        return
    for pointer, message in wrong_relevance(value):
        yield entry.at(f"relevance: {message}", "relevance", *pointer)
