"""What a registration hook registers and what `metadata.kernel.provides` names are not the same.

Why: What the manifest does not name is not found when somebody asks for it by name.

Bad:

    "provides": {"tools": ["Helo"]}     and in the module     register(Hello())

Good:

    "provides": {"tools": ["Hello"]}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.module_side import implements, provides, registered, sides
from kernel_linter.rule import Diagnostic
from kernel_linter.words import nearest, shown

CODE = "KRN010"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    if plugin.manifest is None or implements(plugin) is None:
        return
    named = provides(plugin)
    for side in sides(plugin):
        for found in registered(plugin, side):
            theirs = named.get(found.kind, [])
            for name, call in found.names.items():
                if name not in theirs:
                    near = nearest(name, theirs)
                    told = f"registers {shown(name)}, which metadata.kernel.provides.{found.kind} does not name"
                    yield side.module.at(call, told + (f"; it names {near}" if near else ""), 8)
            for index, name in enumerate(theirs if not found.open else ()):
                if name not in found.names:
                    yield plugin.manifest.at(f"metadata.kernel.provides.{found.kind}: {shown(name)} is not registered by "
                                             f"{found.function.name}", "metadata", "kernel", "provides", found.kind, index,
                                             severity="warning")
