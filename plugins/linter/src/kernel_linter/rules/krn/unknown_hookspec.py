"""A hook implementation with no matching hookspec, or with unknown argument names.

Why: Never called, or fails at registration.

Bad:

    def pre_tool_us(…)

Good:

    def pre_tool_use(…)
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.python_side import hook_functions, modules, wrong_hook
from kernel_linter.rule import Diagnostic

CODE = "KRN005"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for module in modules(plugin):
        for function in hook_functions(module.tree):
            wrong = wrong_hook(function)
            if wrong:
                yield module.at(function, f"{function.name}: {wrong}", len(function.name))
