"""No `version` in the manifest or the catalogue entry.

Why: Every commit counts as an update. Fine while developing, surprising for a published plugin.

Bad:

    {"name": "x"}

Good:

    {"name": "x", "version": "1.0.0"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.manifests import unstated
from kernel_linter.rule import Diagnostic

CODE = "PLG015"
SEVERITY = "info"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    if unstated(plugin, "version"):
        yield plugin.head.at("version: not stated in the manifest nor in the catalogue: every commit counts as an update")
