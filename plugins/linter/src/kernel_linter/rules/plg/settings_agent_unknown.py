"""`agent` in `settings.json` (or inline `settings`) names no agent of this plugin.

Why: The main agent falls back or fails at start.

Bad:

    {"agent": "reviwer"}

Good:

    {"agent": "reviewer"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "PLG036"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    places = [(f, (*p, "agent"), v.get("agent")) for f, p, v in plugin.declared("settings") if isinstance(v, dict)]
    if plugin.is_file("settings.json"):
        file = plugin.json("settings.json")
        places.append((file, ("agent",), file.object.get("agent")))
    for file, pointer, value in places:
        if isinstance(value, str) and value and value not in plugin.agent_names:
            yield file.at(
                f"agent: {shown(value)} is no agent of this plugin; it has: "
                f"{', '.join(sorted(a.name for a in plugin.agents)) or 'none'}",
                *pointer,
            )
