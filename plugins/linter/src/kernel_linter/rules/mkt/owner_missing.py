"""`owner` missing, not an object, or without `name`.

Why: The marketplace cannot be added.

Bad:

    {"name": "m", "plugins": []}

Good:

    {"owner": {"name": "Acme"}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Marketplace
from kernel_linter.rule import Diagnostic

CODE = "MKT005"
SEVERITY = "error"
FIX = "none"
ON = "marketplace"
SINCE = "0.1.0"


def check(market: Marketplace) -> Iterator[Diagnostic]:
    if not isinstance(market.file.data, dict):
        return
    owner = market.data.get("owner")
    if not isinstance(owner, dict):
        yield market.at("owner: required: an object with a name", *(["owner"] if "owner" in market.data else []))
    elif not isinstance(owner.get("name"), str) or not owner["name"].strip():
        yield market.at("owner.name: required: a non-empty text", "owner", *(["name"] if "name" in owner else []))
