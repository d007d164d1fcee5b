"""`name` is `inline`, `builtin`, `skills-dir`, `synced`, or on the vendor's reserved list (unless the repository is the
vendor's).

Why: Refused, or stops loading for existing users when the list grows.

Bad:

    {"name": "agent-skills"}

Good:

    {"name": "acme-skills"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Marketplace
from kernel_linter.markets import claims_vendor, of_vendor
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import BUILT_IN_SOURCES, RESERVED_MARKETPLACES
from kernel_linter.words import shown

CODE = "MKT003"
SEVERITY = "error"
FIX = "none"
ON = "marketplace"
SINCE = "0.1.0"


def check(market: Marketplace) -> Iterator[Diagnostic]:
    name = market.data.get("name")
    if isinstance(name, str) and name.lower() in BUILT_IN_SOURCES:
        yield market.at(f"name: {shown(name)} is the name of a built-in source", "name")
    elif isinstance(name, str) and name.lower() in RESERVED_MARKETPLACES and not of_vendor(market):
        said = f"name: {shown(name)} is reserved for the vendor's own repositories"
        claimed = claims_vendor(market)
        yield market.at(
            f"{said}; that the owner is the vendor is not checked" if claimed else said,
            "name",
            severity="info" if claimed else None,
        )
