"""A file in `bin/` without the executable bit (scripts for Windows excepted).

Why: "Permission denied" on the bare command.

Bad:

    bin/tool (0644)

Good:

    bin/tool (0755)
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic, Fix

CODE = "PLG037"
SEVERITY = "warning"
FIX = "safe"
ON = "plugin"
SINCE = "0.1.0"

WINDOWS = (".bat", ".cmd", ".ps1", ".exe", ".md", ".txt", ".json", ".dll")


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    if os.name == "nt":
        return
    for rel in plugin.tree.files:
        if rel.startswith("bin/") and rel.count("/") == 1 and not rel.startswith("bin/.") and not rel.lower().endswith(WINDOWS):
            if not plugin.tree.files[rel].stat(follow_symlinks=False).st_mode & 0o111:
                yield plugin.file(rel).at(
                    f"{rel}: is not executable", fix=Fix("safe", "set the executable bit", executable=(str(plugin.root / rel),))
                )
