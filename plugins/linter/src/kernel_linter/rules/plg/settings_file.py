"""Root `settings.json` is not a JSON object, or has keys other than `agent` and `subagentStatusLine`.

Why: Other keys are ignored without a message (people put `permissions` here).

Bad:

    {"permissions": {"allow": ["Bash"]}}

Good:

    {"agent": "reviewer"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import SETTINGS_OF_PLUGIN
from kernel_linter.words import shown

CODE = "PLG035"
SEVERITY = "warning"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    if plugin.is_file("settings.json"):
        file = plugin.json("settings.json")
        if file.error or not isinstance(file.data, dict):
            yield file.at_error(f"must hold one JSON object: {file.error or 'found another value'}")
        for key in file.object:
            if key not in (*SETTINGS_OF_PLUGIN, "$schema"):
                yield file.at(
                    f"{shown(key)}: is ignored; a plugin's settings may hold {' and '.join(SETTINGS_OF_PLUGIN)} only",
                    key,
                    span=file.key_span(key),
                )
    for manifest, pointer, value in plugin.declared("settings"):
        for key in value if isinstance(value, dict) else ():
            if key not in SETTINGS_OF_PLUGIN:
                yield manifest.at(f"settings.{key}: is ignored; only {' and '.join(SETTINGS_OF_PLUGIN)} are read", *pointer, key)
