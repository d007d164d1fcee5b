"""An `npm` source.

Why: Lifecycle scripts run at install.

Bad:

    {"source": "npm", …}

Good:

    git or archive source
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic

CODE = "SEC016"
SEVERITY = "info"
FIX = "none"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    if entry.kind == "npm":
        yield entry.at("source: npm packages run their lifecycle scripts at install", "source")
