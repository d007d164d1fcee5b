"""`${VAR}` that is no option and has no `:-default`.

Why: Literal text when unset; the server fails far from the cause.

Bad:

    "${API_URL}"

Good:

    "${API_URL:-https://…}" or userConfig
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import McpServer
from kernel_linter.words import shown

CODE = "MCP013"
SEVERITY = "info"
FIX = "none"
ON = "server"
SINCE = "0.1.0"

OWN = ("CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "CLAUDE_PROJECT_DIR", "HOME", "PATH", "USER", "TMPDIR")


def check(server: McpServer) -> Iterator[Diagnostic]:
    if not server.plugin:
        OWN_HERE = tuple(n for n in OWN if not n.startswith("CLAUDE_PLUGIN"))
    else:
        OWN_HERE = OWN
    seen = set()
    for pointer, value in server.texts():
        for match in re.finditer(r"\$\{([A-Za-z_]\w*)\}", value):
            if match[1] not in OWN_HERE and match[1] not in seen:
                seen.add(match[1])
                yield server.at(
                    f"{shown(server.name)}: ${{{match[1]}}} stays as it is where the variable is not set; give a default or a "
                    f"userConfig option",
                    *pointer,
                )
