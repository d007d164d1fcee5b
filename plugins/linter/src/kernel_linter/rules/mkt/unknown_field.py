"""Unknown key at top level, in `metadata`, or in an entry.

Why: No effect; hosts before about 2.1.125 refuse the whole marketplace because of one key.

Bad:

    {"featured": true}

Good:

    {"metadata": {…}} inside the entry
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Marketplace
from kernel_linter.markets import unknown
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import ENTRY, MARKETPLACE, MARKETPLACE_METADATA

CODE = "MKT019"
SEVERITY = "warning"
FIX = "safe"
ON = "marketplace"
SINCE = "0.1.0"


def check(market: Marketplace) -> Iterator[Diagnostic]:
    data = market.data
    for key in data:
        if key not in MARKETPLACE:
            yield unknown(market, key, MARKETPLACE, key)
    for key in market.metadata:
        if key not in MARKETPLACE_METADATA:
            yield unknown(market, f"metadata.{key}", MARKETPLACE_METADATA, "metadata", key)
    for entry in market.entries:
        for key in entry.data:
            if key not in ENTRY:
                yield unknown(market, key, ENTRY, "plugins", entry.index, key)
