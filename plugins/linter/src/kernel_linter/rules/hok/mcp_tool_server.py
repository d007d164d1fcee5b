"""An `mcp_tool` handler names the plugin's own server by its bare key.

Why: Not connected.

Bad:

    "server": "db"

Good:

    "server": "plugin:acme:db"
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "HOK029"
SEVERITY = "error"
FIX = "safe"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    server = handler.data.get("server")
    plugin = handler.plugin
    if handler.type == "mcp_tool" and plugin and isinstance(server, str) and server in plugin.server_names:
        right = f"plugin:{plugin.name}:{server}"
        yield handler.at(
            f"server: {shown(server)} is not connected under this name; write {right}",
            "server",
            fix=handler.set_value("server", right, f"write {right}"),
        )
