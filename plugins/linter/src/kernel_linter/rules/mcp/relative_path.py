"""`command` or a script argument relative to the working directory.

Why: Resolved in the user's project.

Bad:

    "args": ["./dist/server.js"]

Good:

    "args": ["${CLAUDE_PLUGIN_ROOT}/dist/server.js"]
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import McpServer
from kernel_linter.shell import INTERPRETERS
from kernel_linter.words import shown

CODE = "MCP007"
SEVERITY = "error"
FIX = "unsafe"
ON = "server"
SINCE = "0.1.0"


def check(server: McpServer) -> Iterator[Diagnostic]:
    if not server.plugin or not server.command:
        return
    command, args = server.command.strip(), server.args
    if re.match(r"\.{1,2}[/\\]", command) or (
        re.search(r"[/\\]", command) and not re.match(r"[/~$@]|[A-Za-z]:|npx|\w+://", command) and " " not in command
    ):
        yield server.at(
            f"{shown(server.name)}: command {shown(command)} is looked for in the user's project; start it with "
            f"${{CLAUDE_PLUGIN_ROOT}}/",
            "command",
            fix=server.file.set_value(
                f"${{CLAUDE_PLUGIN_ROOT}}/{command.removeprefix('./')}",
                *server.path,
                "command",
                message="start at the plugin root",
                kind="unsafe",
            )
            if not command.startswith("..")
            else None,
        )
    elif command.rpartition("/")[2] in INTERPRETERS and command not in ("npx", "bunx", "uvx", "uv"):
        for index, arg in enumerate(args):
            if re.match(r"\.{1,2}[/\\]\w", arg) or (
                not arg.startswith(("-", "/", "~", "$", "@"))
                and re.fullmatch(r"[\w.-]+(?:/[\w.-]+)*\.(?:js|mjs|cjs|ts|py|sh|rb|php)", arg)
            ):
                yield server.at(
                    f"{shown(server.name)}: {shown(arg)} is looked for in the user's project; start it with "
                    f"${{CLAUDE_PLUGIN_ROOT}}/",
                    "args",
                    index,
                    fix=server.file.set_value(
                        f"${{CLAUDE_PLUGIN_ROOT}}/{arg.removeprefix('./')}",
                        *server.path,
                        "args",
                        index,
                        message="start at the plugin root",
                        kind="unsafe",
                    )
                    if not arg.startswith("..")
                    else None,
                )
                break
