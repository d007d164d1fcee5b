"""The `hooks` key resolves to `hooks/hooks.json`. Fix: remove it.

Why: The file is seen twice; hosts drop the hook set or list the plugin as failed. The reference validator passes it.

Bad:

    {"hooks": "./hooks/hooks.json"}

Good:

    {}  (the default file loads by itself)
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic

CODE = "PLG028"
SEVERITY = "error"
FIX = "safe"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    refs = plugin.paths("hooks")
    for ref in refs:
        if ref.sound and ref.rel == "hooks/hooks.json":
            whole = not isinstance(ref.pointer[-1], int) or len(refs) == 1
            at = ref.pointer if not isinstance(ref.pointer[-1], int) or not whole else ref.pointer[:-1]
            yield ref.at(
                "hooks: duplicate hooks file: hooks/hooks.json is always loaded; name further files only",
                fix=ref.file.drop(*at, message="remove it"),
            )
