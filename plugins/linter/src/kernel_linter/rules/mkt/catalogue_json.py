"""`marketplace.json` is not a JSON object.

Why: The marketplace cannot be added.

Bad:

    {"name": "m",}

Good:

    {"name": "m", "owner": {"name": "Acme"}, "plugins": []}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Marketplace
from kernel_linter.rule import Diagnostic

CODE = "MKT001"
SEVERITY = "error"
FIX = "none"
ON = "marketplace"
SINCE = "0.1.0"


def check(market: Marketplace) -> Iterator[Diagnostic]:
    if market.file.error and not market.file.problem:
        yield market.file.at_error(f"is not valid JSON: {market.file.error}; the marketplace cannot be added")
    elif not market.file.problem and not isinstance(market.file.data, dict):
        yield market.at("must hold one JSON object; the marketplace cannot be added")
