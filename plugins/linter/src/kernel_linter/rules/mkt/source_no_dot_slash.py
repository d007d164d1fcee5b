"""A path source does not start with `./` and is not a bare name under `metadata.pluginRoot`.

Why: Refused.

Bad:

    {"source": "plugins/x"}

Good:

    {"source": "./plugins/x"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "MKT011"
SEVERITY = "error"
FIX = "safe"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    source = entry.source
    if isinstance(source, str) and source and not source.startswith("./") and source != "." and not entry.traverses:
        if entry.bare and entry.marketplace.metadata.get("pluginRoot"):
            return
        sound = not source.startswith(("/", "~", "http", "git@")) and source[1:2] != ":"
        yield entry.at(
            f"source: {shown(source)} must start with './'",
            "source",
            fix=entry.set_value(f"./{source}", "source", message="write ./ in front") if sound else None,
        )
