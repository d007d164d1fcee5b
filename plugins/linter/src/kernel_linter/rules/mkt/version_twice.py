"""`version` stated in both places (equal).

Why: The next bump will miss one.

Bad:

    both 1.0.0

Good:

    one place
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic

CODE = "MKT016"
SEVERITY = "info"
FIX = "safe"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    own = entry.plugin.data.get("version") if entry.plugin else None
    if isinstance(own, str) and own == entry.data.get("version"):
        yield entry.at(
            "version: stands in the entry and in plugin.json; the next change will miss one",
            "version",
            fix=entry.drop("version", message="remove it from the entry"),
        )
