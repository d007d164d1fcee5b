"""`metadata.pluginRoot` is absolute, leaves the repository or does not exist; info when bare names are used (host ≥ 2.1.239).

Why: Sources do not resolve.

Bad:

    {"pluginRoot": "../p"}

Good:

    {"pluginRoot": "./plugins"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Marketplace
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "MKT029"
SEVERITY = "error"
FIX = "none"
ON = "marketplace"
SINCE = "0.1.0"


def check(market: Marketplace) -> Iterator[Diagnostic]:
    root = market.metadata.get("pluginRoot")
    if "pluginRoot" not in market.metadata:
        return
    if not isinstance(root, str) or root.startswith(("/", "~")) or root[1:2] == ":" or ".." in root.split("/"):
        yield market.at(f"metadata.pluginRoot: {shown(root)} must be a path inside the repository", "metadata", "pluginRoot")
    elif not (market.root / root).is_dir():
        yield market.at(f"metadata.pluginRoot: the folder {shown(root)} does not exist", "metadata", "pluginRoot", about=root)
    elif any(e.bare for e in market.entries):
        yield market.at(
            "metadata.pluginRoot: bare source names need host 2.1.239 or newer", "metadata", "pluginRoot", severity="info"
        )
