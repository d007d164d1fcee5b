"""A local source has no `plugin.json` (and `strict` is not false).

Why: Legal, but the reference `validate` fails on it and the name comes from the folder.

Bad:

    ./plugins/x (no manifest)

Good:

    ./plugins/x/.claude-plugin/plugin.json
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "MKT032"
SEVERITY = "info"
FIX = "none"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    if entry.plugin and entry.plugin.manifest is None and entry.data.get("strict") is not False:
        yield entry.at(
            f"source: {shown(entry.place or '.')} has no manifest (no manifest found); the name comes from the entry", "source"
        )
