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
from kernel_linter.source import Pointer
from kernel_linter.words import shown

CODE = "MCP007"
SEVERITY = "error"
FIX = "unsafe"
ON = "server"
SINCE = "0.1.0"

SCRIPT = re.compile(r"[\w.-]+(?:/[\w.-]+)*\.(?:js|mjs|cjs|ts|py|sh|rb|php)")
ELSEWHERE = re.compile(r"[/~$@]|[A-Za-z]:|npx|\w+://")


def check(server: McpServer) -> Iterator[Diagnostic]:
    command = server.command.strip()
    if not server.plugin or not command:
        return
    sliced = re.search(r"[/\\]", command) and " " not in command
    if re.match(r"\.{1,2}[/\\]", command) or (sliced and not ELSEWHERE.match(command)):
        yield speak(server, command, "command")
    elif command.rpartition("/")[2] in INTERPRETERS and command not in ("npx", "bunx", "uvx", "uv"):
        for index, arg in enumerate(server.args):
            if re.match(r"\.{1,2}[/\\]\w", arg) or (arg[:1] not in "-/~$@" and SCRIPT.fullmatch(arg)):
                yield speak(server, arg, "args", index)
                break


def speak(server: McpServer, path: str, *pointer: Pointer) -> Diagnostic:
    """What is wrong with a path, with the repair that starts it at the plugin root."""
    root = "${CLAUDE_PLUGIN_ROOT}/"
    new = root + path.removeprefix("./")
    fix = server.file.set_value(new, *server.path, *pointer, message="start at the plugin root", kind="unsafe")
    said = f"{shown(server.name)}: {shown(path)} is looked for in the user's project; start it with {root}"
    return server.at(said, *pointer, fix=None if path.startswith("..") else fix)
