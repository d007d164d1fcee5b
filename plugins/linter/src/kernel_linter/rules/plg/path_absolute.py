"""A path field is absolute or has a drive letter.

Why: Refused; exists on one machine only.

Bad:

    {"hooks": "/opt/h.json"}

Good:

    {"hooks": "./config/h.json"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import PATH_FIELDS
from kernel_linter.words import shown

CODE = "PLG024"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for key in PATH_FIELDS:
        for ref in plugin.paths(key):
            if ref.absolute:
                yield ref.at(f"{key}: {shown(ref.value)} is absolute; write it from the plugin root with './'")
