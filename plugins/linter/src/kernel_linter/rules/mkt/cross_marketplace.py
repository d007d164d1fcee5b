"""An entry or local plugin depends on another marketplace that `allowCrossMarketplaceDependenciesOn` does not list.

Why: Install is blocked.

Bad:

    {"name": "x", "marketplace": "b"}

Good:

    {"allowCrossMarketplaceDependenciesOn": ["b"]}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Marketplace
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "MKT031"
SEVERITY = "error"
FIX = "none"
ON = "marketplace"
SINCE = "0.1.0"


def check(market: Marketplace) -> Iterator[Diagnostic]:
    allowed = market.data.get("allowCrossMarketplaceDependenciesOn")
    allowed = allowed if isinstance(allowed, list) else []
    own = market.data.get("name")
    for file, pointer, value in [
        (e.file, ("plugins", e.index, "dependencies"), e.data.get("dependencies")) for e in market.entries
    ] + [(p.manifest, ("dependencies",), p.data.get("dependencies")) for p in market.plugins if p.manifest]:
        for index, item in enumerate(value if isinstance(value, list) else ()):
            other = (
                item.get("marketplace") if isinstance(item, dict) else item.partition("@")[2] if isinstance(item, str) else None
            )
            if isinstance(other, str) and other and other != own and other not in allowed:
                yield file.at(
                    f"dependencies: the marketplace {shown(other)} is not in allowCrossMarketplaceDependenciesOn", *pointer, index
                )
