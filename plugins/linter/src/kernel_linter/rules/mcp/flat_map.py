"""Servers without the `mcpServers` wrapper. Fix: wrap.

Why: Some hosts register nothing.

Bad:

    {"db": {"command": "x"}}

Good:

    {"mcpServers": {"db": {"command": "x"}}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic, Fix
from kernel_linter.source import JsonFile

CODE = "MCP002"
SEVERITY = "warning"
FIX = "safe"
ON = "mcp-file"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    data = file.object
    if "mcpServers" not in data and any(isinstance(v, dict) for v in data.values()):
        node = file.node()
        fix = (
            Fix(
                "safe",
                "wrap them",
                (file.swap((node.start, node.start), '{"mcpServers": '), file.swap((node.end, node.end), "}")),
            )
            if node
            else None
        )
        yield file.at("the servers stand without the wrapper 'mcpServers'; some hosts register none of them", fix=fix)
