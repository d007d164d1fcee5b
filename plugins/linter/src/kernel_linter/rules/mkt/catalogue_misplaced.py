"""`marketplace.json` at the repository root or in a sub-folder only, not in `.claude-plugin/`.

Why: "owner/repo" cannot be added.

Bad:

    marketplace.json

Good:

    .claude-plugin/marketplace.json
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.catalogue import Marketplace
from kernel_linter.rule import Diagnostic

CODE = "MKT033"
SEVERITY = "error"
FIX = "none"
ON = "plugin marketplace"
SINCE = "0.1.0"

EXPECTED = ".claude-plugin/marketplace.json"


def check(target: Plugin | Marketplace) -> Iterator[Diagnostic]:
    if isinstance(target, Marketplace):
        if target.file.path.name == "marketplace.json" and target.file.path.absolute().parent.name != ".claude-plugin":
            yield target.at(f"the catalogue must be {EXPECTED}; here 'owner/repo' cannot be added")
    elif target.marketplace is None and target.is_file("marketplace.json") and not target.exists(EXPECTED):
        yield target.file("marketplace.json").at(f"marketplace.json: must be {EXPECTED}; here 'owner/repo' cannot be added")
