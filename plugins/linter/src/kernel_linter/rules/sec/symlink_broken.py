"""A symlink without a target.

Why: Missing component.

Bad:

    skills/a -> ../gone

Good:

    fix or remove
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic

CODE = "SEC007"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for rel in plugin.tree.links:
        if not os.path.exists(plugin.root / rel):
            yield plugin.file(rel).at(f"{rel}: a link to something that is not there, or to itself", span=(0, 0))
