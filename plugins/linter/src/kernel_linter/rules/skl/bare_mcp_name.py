"""`mcp__<server>__…` where `<server>` is this plugin's own MCP server. Fix: `mcp__plugin_<plugin>_<server>__…`.

Why: The name never matches; the tool prompts or is missing.

Bad:

    allowed-tools: mcp__db__query

Good:

    allowed-tools: mcp__plugin_acme_db__query
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import bare_mcp_names

CODE = "SKL022"
SEVERITY = "error"
FIX = "safe"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    yield from bare_mcp_names(text, "allowed-tools", "disallowed-tools")
