r"""`name` missing, empty, with space, `/`, `\`, `..`, or just `.`.

Why: The marketplace cannot be added.

Bad:

    {"name": "My Market"}

Good:

    {"name": "my-market"}
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.catalogue import Marketplace
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "MKT002"
SEVERITY = "error"
FIX = "none"
ON = "marketplace"
SINCE = "0.1.0"


def check(market: Marketplace) -> Iterator[Diagnostic]:
    name = market.data.get("name")
    if not isinstance(market.file.data, dict):
        return
    if not isinstance(name, str) or not name:
        yield market.at("name: required: a non-empty text", *(["name"] if "name" in market.data else []))
    elif re.search(r"[\s/\\]|\.\.", name) or name == ".":
        yield market.at(f"name: {shown(name)} must have no white space, no '/', no '\\' and no '..'", "name")
