"""A plugin depends on itself or, inside one marketplace, on a cycle.

Why: Enable and disable block each other.

Bad:

    a → b → a

Good:

    a → b
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.manifests import cycle, dependency_names, dependency_places
from kernel_linter.rule import Diagnostic

CODE = "PLG047"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    own = plugin.name.lower()
    graph: dict[str, list[str]] = {}
    for other in plugin.marketplace.plugins if plugin.marketplace else [plugin]:
        graph[other.name.lower()] = [n.lower() for n in dependency_names(other)]
    for file, pointer, index, name in dependency_places(plugin):
        way = cycle(graph, own, name.lower())
        if name.lower() == own:
            yield file.at("dependencies: the plugin depends on itself", *pointer, index)
        elif way:
            yield file.at(f"dependencies: a cycle: {' -> '.join(way)}", *pointer, index)
