"""`.mcp.json` (or a named file) is not a JSON object. The reference validator never reads it.

Why: No server starts.

Bad:

    {

Good:

    {"mcpServers": {}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.words import shown

CODE = "MCP001"
SEVERITY = "error"
FIX = "none"
ON = "mcp-file"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    if file.error and not file.problem:
        yield file.at_error(f"is not valid JSON: {file.error}; no server starts")
    elif not file.problem and not isinstance(file.data, dict):
        yield file.at('must hold one JSON object: {"mcpServers": {...}}')
    elif "mcpServers" in file.object and not isinstance(file.object["mcpServers"], dict):
        yield file.at(f"mcpServers: must be an object, found {shown(file.object['mcpServers'])}", "mcpServers")
