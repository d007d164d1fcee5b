"""`plugins` missing or not a list of objects.

Why: The marketplace cannot be added.

Bad:

    {"plugins": {}}

Good:

    {"plugins": []}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Marketplace
from kernel_linter.rule import Diagnostic

CODE = "MKT006"
SEVERITY = "error"
FIX = "none"
ON = "marketplace"
SINCE = "0.1.0"


def check(market: Marketplace) -> Iterator[Diagnostic]:
    if not isinstance(market.file.data, dict):
        return
    plugins = market.data.get("plugins")
    if not isinstance(plugins, list):
        yield market.at("plugins: required: a list of objects", *(["plugins"] if "plugins" in market.data else []))
    for index, entry in enumerate(plugins if isinstance(plugins, list) else ()):
        if not isinstance(entry, dict):
            yield market.at("plugins: every entry must be an object", "plugins", index)
