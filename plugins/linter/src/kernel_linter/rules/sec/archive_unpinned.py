"""An `archive` source without `sha256`.

Why: The bytes may change.

Bad:

    url only

Good:

    url and sha256
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic

CODE = "SEC015"
SEVERITY = "info"
FIX = "none"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    if entry.kind == "archive" and not entry.fields.get("sha256"):
        yield entry.at("source: an archive without sha256: its bytes may change", "source")
