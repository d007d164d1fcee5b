"""A path field does not start with `./`.

Why: The plugin does not load ("invalid input", no hint which entry).

Bad:

    {"skills": ["skills/a"]}

Good:

    {"skills": ["./skills/a"]}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import PATH_FIELDS
from kernel_linter.words import shown

CODE = "PLG022"
SEVERITY = "error"
FIX = "safe"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for key in PATH_FIELDS:
        for ref in plugin.paths(key):
            if ref.file is plugin.manifest and not (ref.dotted or ref.absolute or ref.traverses or ref.remote):
                yield ref.at(
                    f"{key}: {shown(ref.value)} must start with './'; the plugin does not load",
                    fix=ref.file.set_value(f"./{ref.value}", *ref.pointer, message="write ./ in front") if ref.value else None,
                )
