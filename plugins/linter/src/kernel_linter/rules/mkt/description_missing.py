"""No description of the marketplace, or of an entry.

Why: Empty lines in the picker.

Bad:

    {"name": "x", "source": "./x"}

Good:

    {"name": "x", "source": "./x", "description": "…"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Marketplace
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "MKT008"
SEVERITY = "info"
FIX = "none"
ON = "marketplace"
SINCE = "0.1.0"


def check(market: Marketplace) -> Iterator[Diagnostic]:
    if not isinstance(market.file.data, dict):
        return
    if not (market.data.get("description") or market.metadata.get("description")):
        yield market.at("description: missing")
    for entry in market.entries:
        if not entry.data.get("description") and not (entry.plugin and entry.plugin.data.get("description")):
            yield entry.at(f"description: the entry {shown(entry.name)} has none")
