"""No component is found and there are no `dependencies`.

Why: Installs, does nothing.

Bad:

    only README.md

Good:

    at least one component
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.manifests import broken
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import PATH_FIELDS

CODE = "PLG034"
SEVERITY = "warning"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    if broken(plugin):
        return
    part = plugin.data.get("metadata")
    kernel = part.get("kernel") if isinstance(part, dict) else None
    found = (
        plugin.texts,
        plugin.hook_files,
        plugin.hooks,
        plugin.servers,
        plugin.mcp_files,
        plugin.lsp,
        plugin.monitors,
        plugin.styles,
        plugin.themes,
        plugin.workflows,
        plugin.names("bin"),
        kernel,
    )
    declared = any(plugin.declared(key) for key in (*PATH_FIELDS, "dependencies", "settings", "userConfig", "channels"))
    if not any(found) and not declared and not plugin.is_file("settings.json"):
        yield plugin.head.at("nothing to load: no component is found and there are no dependencies")
