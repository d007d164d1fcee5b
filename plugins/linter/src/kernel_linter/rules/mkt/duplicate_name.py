"""Two entries share a name, compared without case.

Why: The second can never be installed; ids are matched without case. The reference validator compares with case.

Bad:

    [{"name": "a"}, {"name": "A"}]

Good:

    [{"name": "a"}, {"name": "b"}]
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Marketplace
from kernel_linter.rule import Diagnostic
from kernel_linter.words import counted, shown

CODE = "MKT009"
SEVERITY = "error"
FIX = "none"
ON = "marketplace"
SINCE = "0.1.0"


def check(market: Marketplace) -> Iterator[Diagnostic]:
    entries = market.entries
    for same in counted([e.name.lower() for e in entries if isinstance(e.data.get("name"), str)]).values():
        named = [e for e in entries if isinstance(e.data.get("name"), str)]
        for index in same[1:]:
            yield named[index].at(
                f"name: duplicate plugin name {shown(named[index].name)}; the entry can never be installed", "name"
            )
