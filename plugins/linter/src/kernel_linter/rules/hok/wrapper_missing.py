"""The event map is at the top level of a hooks file. Fix: wrap it.

Why: No hook loads; the plugin is listed as failed.

Bad:

    {"Stop": […]}

Good:

    {"hooks": {"Stop": […]}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic, Fix
from kernel_linter.source import JsonFile
from kernel_linter.tables import EVENTS

CODE = "HOK002"
SEVERITY = "error"
FIX = "safe"
ON = "hook-file"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    data = file.object
    if "hooks" not in data and any(key in EVENTS for key in data):
        node = file.node()
        fix = (
            Fix(
                "safe",
                "wrap it in 'hooks'",
                (file.swap((node.start, node.start), '{"hooks": '), file.swap((node.end, node.end), "}")),
            )
            if node and not set(data) - set(EVENTS)
            else None
        )
        yield file.at("hooks: Invalid input: expected record: the event map must stand under the key 'hooks'", fix=fix)
