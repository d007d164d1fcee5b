"""`strict: false` and the plugin's `plugin.json` declares components. Fix: drop `strict`.

Why: The plugin fails to load ("conflicting manifests"). The reference validator passes it.

Bad:

    {"strict": false} + plugin.json {"skills": …}

Good:

    {} (strict defaults to true)
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import PATH_FIELDS

CODE = "MKT017"
SEVERITY = "error"
FIX = "unsafe"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    if entry.data.get("strict") is False and entry.plugin:
        keys = [k for k in PATH_FIELDS if entry.plugin.data.get(k) is not None]
        if keys:
            yield entry.at(
                f"strict: conflicting manifests: plugin.json declares {', '.join(keys)} too; the plugin fails to load",
                "strict",
                fix=entry.drop("strict", message="drop strict", kind="unsafe"),
            )
