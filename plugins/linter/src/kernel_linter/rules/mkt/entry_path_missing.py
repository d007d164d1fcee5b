"""A component path in an entry does not exist under its local source, or lacks `./`.

Why: The component is missing; with a root source a wrong list falls back to the full scan.

Bad:

    {"skills": ["./skils/a"]}

Good:

    {"skills": ["./skills/a"]}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import PATH_FIELDS
from kernel_linter.words import shown

CODE = "MKT018"
SEVERITY = "error"
FIX = "none"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    if not entry.plugin:
        return
    for key in PATH_FIELDS:
        for ref in entry.plugin.paths(key):
            if ref.file is not entry.file or ref.pointer[:2] != ("plugins", entry.index) or ref.remote or not ref.value:
                continue
            if ref.traverses or ref.absolute:
                yield ref.at(f"{key}: {shown(ref.value)} must be a path inside the plugin, written with './'")
            elif not ref.dotted:
                yield ref.at(f"{key}: {shown(ref.value)} must start with './'")
            elif not ref.exists:
                yield ref.at(f"{key}: path not found: {shown(ref.value)}", about=ref.rel)
