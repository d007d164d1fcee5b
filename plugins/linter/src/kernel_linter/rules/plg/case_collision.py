"""Two component paths differ only by letter case, or a path field differs from the real file by case.

Why: Works on one system, missing on another.

Bad:

    ./Commands/x.md for commands/x.md

Good:

    ./commands/x.md
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.manifests import other_case
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import PATH_FIELDS
from kernel_linter.words import counted, shown

CODE = "PLG049"
SEVERITY = "warning"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    folders = ("skills", "commands", "agents", "output-styles", "hooks", "workflows", "themes", "monitors")
    paths = [p for p in (*plugin.tree.files, *plugin.tree.folders) if p.split("/")[0].lower() in folders]
    for same in counted([p.lower() for p in paths]).values():
        first, second = paths[same[0]], paths[same[1]]
        yield plugin.file(second).at(f"{second}: differs from {first} by letter case only")
    for key in PATH_FIELDS:
        for ref in plugin.paths(key):
            if ref.sound and (real := other_case(plugin, ref.rel)):
                yield ref.at(f"{key}: {shown(ref.value)} is written {real!r} on disk")
