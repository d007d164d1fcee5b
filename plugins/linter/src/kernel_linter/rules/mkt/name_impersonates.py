"""`name` imitates an official one or holds non-ASCII letters.

Why: Refused as impersonation.

Bad:

    {"name": "official-claude-plugins"}

Good:

    {"name": "acme-plugins"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Marketplace
from kernel_linter.markets import imitates, of_vendor
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import RESERVED_MARKETPLACES
from kernel_linter.words import shown

CODE = "MKT004"
SEVERITY = "error"
FIX = "none"
ON = "marketplace"
SINCE = "0.1.0"


def check(market: Marketplace) -> Iterator[Diagnostic]:
    name = market.data.get("name")
    if not isinstance(name, str) or name.lower() in RESERVED_MARKETPLACES:
        return
    if not name.isascii():
        yield market.at(f"name: {shown(name)} holds letters outside ASCII, which counts as impersonation", "name")
    elif imitates(name) and not of_vendor(market):
        yield market.at(f"name: {shown(name)} imitates an official marketplace", "name")
