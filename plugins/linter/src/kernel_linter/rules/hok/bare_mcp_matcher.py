"""A matcher or `if` on the plugin's own MCP server by bare key.

Why: Never fires.

Bad:

    "mcp__db__.*"

Good:

    "mcp__plugin_acme_db__.*"
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.hooks_model import Group
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import scoped
from kernel_linter.words import shown

CODE = "HOK019"
SEVERITY = "error"
FIX = "safe"
ON = "group"
SINCE = "0.1.0"


def check(group: Group) -> Iterator[Diagnostic]:
    plugin = group.plugin
    if not plugin or not group.on_tool:
        return
    for server in plugin.server_names:
        bare = re.compile(rf"mcp__{re.escape(re.sub(r'[^A-Za-z0-9_-]', '_', server))}(?=__|$|[|,)\s])")
        full = f"mcp__{scoped(plugin, server)}"
        if group.matcher and bare.search(group.matcher):
            yield group.at(
                f"matcher: never fires: the tools of the plugin's server {shown(server)} are called {full}__...",
                "matcher",
                fix=group.set_matcher(bare.sub(full, group.matcher), f"write {full}"),
            )
        for handler in group.handlers():
            condition = handler.data.get("if")
            if isinstance(condition, str) and bare.search(condition):
                yield handler.at(
                    f"if: never fires: the tools of the plugin's server {shown(server)} are called {full}__...",
                    "if",
                    fix=handler.set_value("if", bare.sub(full, condition), f"write {full}"),
                )
