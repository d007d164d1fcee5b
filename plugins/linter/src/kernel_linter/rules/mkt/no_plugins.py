"""`plugins` is empty.

Why: Nothing to install.

Bad:

    {"plugins": []}

Good:

    {"plugins": [{…}]}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Marketplace
from kernel_linter.rule import Diagnostic

CODE = "MKT007"
SEVERITY = "warning"
FIX = "none"
ON = "marketplace"
SINCE = "0.1.0"


def check(market: Marketplace) -> Iterator[Diagnostic]:
    if market.data.get("plugins") == []:
        yield market.at("plugins: the list is empty: there is nothing to install", "plugins")
