"""Entry `name` differs from the plugin's own `name`.

Why: Users install one name and type another; old hosts cannot disable it.

Bad:

    entry "x-plugin", plugin.json "x"

Good:

    the same name twice
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "MKT014"
SEVERITY = "warning"
FIX = "unsafe"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    own = entry.plugin.data.get("name") if entry.plugin else None
    if isinstance(own, str) and own and own != entry.name and len(entry.plugin.entries if entry.plugin else ()) == 1:
        yield entry.at(
            f"name: the entry says {shown(entry.name)}, its plugin.json {shown(own)}",
            "name",
            fix=entry.set_value(own, "name", message=f"write {own}", kind="unsafe"),
        )
