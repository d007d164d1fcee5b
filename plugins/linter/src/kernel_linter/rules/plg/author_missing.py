"""No `author`.

Why: No one to ask.

Bad:

    {"name": "x"}

Good:

    {"name": "x", "author": {"name": "Acme"}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.manifests import unstated
from kernel_linter.rule import Diagnostic

CODE = "PLG018"
SEVERITY = "info"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    if unstated(plugin, "author"):
        yield plugin.head.at("author: missing; nobody knows whom to ask")
