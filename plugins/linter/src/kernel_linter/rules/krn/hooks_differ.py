"""The hooks of the module and `metadata.kernel.implements` are not the same, or a hook lacks its `@hookimpl`.

Why: The kernel refuses the plugin when it loads the module.

Bad:

    "implements": ["register_tools"]     and in the module     @hookimpl def stop(event)

Good:

    "implements": ["register_tools", "stop"]
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.module_side import Side, implements, sides
from kernel_linter.python_side import Function, hook_names
from kernel_linter.rule import Diagnostic, Severity

CODE = "KRN009"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    named = implements(plugin)
    if named is None or plugin.manifest is None:
        return
    known = hook_names()
    for side in sides(plugin):
        for name, function in side.marked.items():
            if name in known and name not in named:
                yield _at(side, function, f"{name}: metadata.kernel.implements of the manifest does not name it")
        for name, function in side.bare.items():
            first = function.args.args[0].arg if function.args.args else ""
            if name in known and name in named and not function.decorator_list:
                yield _at(side, function, f"{name}: has no @hookimpl, so it is no hook")
            elif name in known and name not in named and first in ("event", "register") and not function.decorator_list:
                yield _at(side, function, f"{name}: has a hook's name, but no @hookimpl, and the manifest does not name it",
                          "warning")
        raw = plugin.data["metadata"]["kernel"].get("implements", [])
        for name in named:
            if name in known and not side.open and name not in {*side.marked, *side.bare, *side.other}:
                yield plugin.manifest.at(f"metadata.kernel.implements: {name}: {side.module.file.path.name} has no such hook",
                                         "metadata", "kernel", "implements", raw.index(name if name in raw else "*"))


def _at(side: Side, function: Function, message: str, severity: Severity | None = None) -> Diagnostic:
    return side.module.at(function, message, len(function.name), severity)
