"""A path field names something that does not exist. Covers `outputStyles`, `mcpServers`, `lspServers` too, which the reference
validator skips.

Why: The component is missing at run time.

Bad:

    {"skills": "./skils/"}

Good:

    {"skills": "./skills/"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import PATH_FIELDS
from kernel_linter.words import shown

CODE = "PLG025"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for key in PATH_FIELDS:
        for ref in plugin.paths(key):
            if ref.file is plugin.manifest and ref.sound and not plugin.exists(ref.rel):
                yield ref.at(f"{key}: path not found: {shown(ref.value)}", about=ref.rel)
