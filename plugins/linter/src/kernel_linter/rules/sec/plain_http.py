"""An `http://` MCP or hook URL that is not loopback.

Why: Prompts and tool results in clear text.

Bad:

    http://api.example.com

Good:

    https://…
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic
from kernel_linter.servers import McpServer
from kernel_linter.shell import local_host
from kernel_linter.words import host_of, shown

CODE = "SEC004"
SEVERITY = "warning"
FIX = "none"
ON = "handler server"
SINCE = "0.1.0"


def check(target: Handler | McpServer) -> Iterator[Diagnostic]:
    key = "url"
    value = target.data.get(key)
    if (
        isinstance(value, str)
        and value.lower().startswith(("http://", "ws://"))
        and "${" not in host_of(value)
        and not local_host(host_of(value))
    ):
        yield target.at(f"url: {shown(value)} sends everything in clear text; use https", key)
