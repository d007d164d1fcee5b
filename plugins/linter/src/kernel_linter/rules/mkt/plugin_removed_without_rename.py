"""(with `--since REF`) an entry vanished and `renames` does not mention it.

Why: Users get "plugin not found".

Bad:

    entry removed

Good:

    {"renames": {"old": null}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Marketplace
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "MKT027"
SEVERITY = "info"
FIX = "none"
ON = "marketplace"
SINCE = "0.1.0"


def check(market: Marketplace) -> Iterator[Diagnostic]:
    renames = market.data.get("renames")
    known = {*market.names, *(renames if isinstance(renames, dict) else ())}
    for name in market.names_before:
        if name not in known:
            yield market.at(
                f"plugins: {shown(name)} is gone and renames does not mention it; users get 'plugin not found'",
                *(["renames"] if isinstance(renames, dict) else []),
            )
