"""A named `.mcpb`/`.dxt` bundle does not exist, or a bundle URL is not https.

Why: The server does not start.

Bad:

    "./x.mcpb" (missing)

Good:

    existing file
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "MCP019"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for ref in plugin.paths("mcpServers"):
        bundle = ref.value.lower().split("?")[0].endswith((".mcpb", ".dxt"))
        if ref.remote and not ref.value.startswith("https://"):
            yield ref.at(f"mcpServers: {shown(ref.value)} must be an https URL")
        elif bundle and ref.sound and not ref.exists:
            yield ref.at(f"mcpServers: there is no {shown(ref.value)}", about=ref.rel)
