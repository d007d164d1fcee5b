"""A path field contains a `..` segment, even if it stays inside.

Why: Refused; after install the outside file is not there anyway.

Bad:

    {"commands": "./../shared/c.md"}

Good:

    {"commands": "./commands/c.md"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import PATH_FIELDS
from kernel_linter.words import shown

CODE = "PLG023"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for key in PATH_FIELDS:
        for ref in plugin.paths(key):
            if ref.traverses and not ref.remote:
                yield ref.at(f"{key}: {shown(ref.value)} has a '..' segment, which is refused (path traversal)")
