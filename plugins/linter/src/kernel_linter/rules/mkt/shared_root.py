"""Several entries share one source directory without distinct component lists.

Why: Each install brings everything, several times, under different names.

Bad:

    two entries, both "source": "./"

Good:

    each with its own "skills": [...]
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from kernel_linter.catalogue import Marketplace
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import PATH_FIELDS
from kernel_linter.words import shown

CODE = "MKT030"
SEVERITY = "warning"
FIX = "none"
ON = "marketplace"
SINCE = "0.1.0"


def check(market: Marketplace) -> Iterator[Diagnostic]:
    for plugin in market.plugins:
        if len(plugin.entries) < 2:
            continue
        lists = [
            json.dumps({k: e.data.get(k) for k in PATH_FIELDS if e.data.get(k) is not None}, sort_keys=True)
            for e in plugin.entries
        ]
        for index, text in enumerate(lists):
            if text == "{}" or lists.index(text) != index:
                first = plugin.entries[lists.index(text) if lists.index(text) != index else 0 if index else 1]
                yield plugin.entries[index].at(
                    f"source: shares its folder with {shown(first.name)} without a component list of its own", "source"
                )
