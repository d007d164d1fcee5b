"""A path source does not exist in the repository.

Why: "Plugin directory not found" at install. The reference validator does not look.

Bad:

    {"source": "./plugins/old"}

Good:

    {"source": "./plugins/new"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "MKT013"
SEVERITY = "error"
FIX = "none"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    place = entry.place
    if place is None or (entry.bare and not entry.marketplace.plugin_root):
        return
    if entry.plugin is None:
        yield entry.at(f"source: the folder {shown(place)} does not exist in the repository", "source", about=place)
