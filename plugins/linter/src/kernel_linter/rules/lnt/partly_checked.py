"""The folder has too many entries or is nested too deeply for one run, or holds devices, sockets or named pipes.

Why: Faults in the part that was left out are not found.

Bad:

    60,000 files in the plugin folder

Good:

    the plugin's own files only
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic

CODE = "LNT002"
SEVERITY = "warning"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    if plugin.tree.stopped:
        yield plugin.head.at(f"the folder is only partly checked: {plugin.tree.stopped}", span=(0, 0))
    for rel in plugin.tree.odd:
        yield plugin.file(rel).at(
            f"{rel}: is neither a file nor a folder (a device, socket or named pipe); it is not read", span=(0, 0)
        )
