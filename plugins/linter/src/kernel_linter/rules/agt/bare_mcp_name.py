"""Own MCP server by its bare name (see SKL022).

Why: Tool missing; with only such entries the launch is refused.

Bad:

    tools: mcp__db__query

Good:

    tools: mcp__plugin_acme_db__query
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import bare_mcp_names

CODE = "AGT014"
SEVERITY = "error"
FIX = "safe"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    yield from bare_mcp_names(text, "tools", "disallowedTools")
