"""No `description` in the manifest or the entry.

Why: Users see an empty line in the picker.

Bad:

    {"name": "x"}

Good:

    {"name": "x", "description": "Formats SQL files"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.manifests import broken
from kernel_linter.rule import Diagnostic

CODE = "PLG017"
SEVERITY = "warning"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    if broken(plugin):
        return
    if not any(isinstance(d := data.get("description"), str) and d.strip() for _, _, data in plugin.sources()):
        yield plugin.head.at("description: missing; users see an empty line where they choose a plugin")
