"""Entry `version` differs from `plugin.json`. Fix: remove it from the entry.

Why: The manifest wins silently; the catalogue shows a wrong number.

Bad:

    entry 1.0.0, plugin.json 2.0.0

Good:

    version only in plugin.json
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "MKT015"
SEVERITY = "warning"
FIX = "safe"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    own = entry.plugin.data.get("version") if entry.plugin else None
    said = entry.data.get("version")
    if isinstance(own, str) and isinstance(said, str) and own != said:
        yield entry.at(
            f"version: the entry says {shown(said)}, plugin.json {shown(own)}; plugin.json wins",
            "version",
            fix=entry.drop("version", message="remove it from the entry"),
        )
