"""A `renames` chain ends nowhere or in a cycle, or a key is still a listed plugin.

Why: Migration fails for existing users.

Bad:

    {"a": "b", "b": "a"}

Good:

    {"a": "b"} with b listed
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Marketplace
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "MKT026"
SEVERITY = "error"
FIX = "none"
ON = "marketplace"
SINCE = "0.1.0"


def check(market: Marketplace) -> Iterator[Diagnostic]:
    renames = market.data.get("renames")
    if not isinstance(renames, dict):
        if renames is not None:
            yield market.at("renames: must be an object of old and new names", "renames")
        return
    listed = set(market.names)
    for old, new in renames.items():
        if old in listed:
            yield market.at(f"renames: {shown(old)} is still a listed plugin", "renames", old)
            continue
        seen = [old]
        while isinstance(new, str) and new not in listed:
            if new in seen:
                yield market.at(f"renames: a cycle: {' -> '.join([*seen, new])}", "renames", old)
                break
            seen.append(new)
            if new not in renames:
                yield market.at(
                    f"renames: {shown(old)} ends at {shown(new)}, which is no listed plugin and not null", "renames", old
                )
                break
            new = renames[new]
        if new is not None and not isinstance(new, str):
            yield market.at(f"renames: {shown(old)} must lead to a name or null", "renames", old)
