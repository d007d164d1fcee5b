"""A directory with a `plugin.json` in the repository is in no entry.

Why: Nobody can install it.

Bad:

    plugins/new (not listed)

Good:

    entry for ./plugins/new
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.catalogue import Marketplace
from kernel_linter.rule import Diagnostic

CODE = "MKT034"
SEVERITY = "info"
FIX = "none"
ON = "marketplace"
SINCE = "0.1.0"


def check(market: Marketplace) -> Iterator[Diagnostic]:
    listed = {(e.place or "").rstrip("/") for e in market.entries if e.place is not None}
    if not market.entries:
        return
    for rel in market.tree.files:
        if rel.endswith("/.claude-plugin/plugin.json"):
            folder = rel.removesuffix("/.claude-plugin/plugin.json")
            if folder not in listed and not re.search(
                r"(?:^|/)(?:tests?|fixtures?|templates?|examples?|node_modules|vendors?|\.claude)(?:/|$)", folder
            ):
                yield market.at(f"{folder}: holds a plugin that no entry lists", "plugins")
