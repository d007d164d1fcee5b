"""Importing the plugin module starts threads, network or writes files.

Why: Slows every start; breaks listing and linting.

Bad:

    top-level requests.get

Good:

    inside a hook
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.python_side import modules, side_effects
from kernel_linter.rule import Diagnostic

CODE = "KRN006"
SEVERITY = "warning"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for module in modules(plugin):
        for node, what in side_effects(module.tree):
            yield module.at(node, f"{what} at import: it slows every start and breaks listing; do it inside a hook", 1)
