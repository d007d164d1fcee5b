"""Text or config of the plugin refers to a file above its root (`../shared`).

Why: The cache copy does not contain it.

Bad:

    See [rules](../../../shared/rules.md)

Good:

    copy or link the file into the plugin
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.manifests import outside
from kernel_linter.rule import Diagnostic
from kernel_linter.shell import leaves_root
from kernel_linter.words import local_link, shown

CODE = "PLG052"
SEVERITY = "warning"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for text in plugin.texts:
        path = leaves_root(text.text)
        if path:
            at = text.text.find(path)
            yield text.at(f"{shown(path)} lies above the plugin root and is not in the installed copy", span=(at, at + len(path)))
        for link, offset in text.links:
            if outside(text.rel, local_link(link)):
                yield text.at(
                    f"{shown(link)} lies above the plugin root and is not in the installed copy",
                    span=(offset, offset + len(link)),
                )
    for hooks in plugin.hooks:
        for handler in hooks.handlers():
            if path := leaves_root(handler.words):
                yield handler.at(f"{shown(path)} lies above the plugin root and is not in the installed copy", "command")
    for server in (*plugin.servers, *plugin.lsp, *plugin.monitors):
        for pointer, value in server.texts():
            if path := leaves_root(value):
                yield server.at(f"{shown(path)} lies above the plugin root and is not in the installed copy", *pointer)
