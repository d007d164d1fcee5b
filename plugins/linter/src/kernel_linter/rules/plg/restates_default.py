"""A path key only repeats the default folder (`skills: "./skills/"`).

Why: No effect today; one more thing to keep right.

Bad:

    {"skills": "./skills/"}

Good:

    {}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import DEFAULT_PLACES

CODE = "PLG030"
SEVERITY = "info"
FIX = "safe"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for key, place in DEFAULT_PLACES.items():
        if key in ("agents", "hooks"):
            continue
        refs = [r for r in plugin.paths(key) if r.file is plugin.manifest]
        value = plugin.data.get(key)
        only_paths = isinstance(value, str) or (isinstance(value, list) and len(value) == len(refs) == 1)
        if refs and only_paths and all(r.sound and r.rel == place for r in refs) and plugin.exists(place):
            file = refs[0].file
            yield refs[0].at(f"{key}: only repeats the default, {place}", fix=file.drop(key, message="remove it"))
