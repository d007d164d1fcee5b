"""`npx`, `bunx`, `uvx` run a package without a version, or `@latest`.

Why: Users run whatever was published last.

Bad:

    npx -y pkg

Good:

    npx -y pkg@1.4.2
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_help import pinned
from kernel_linter.rule import Diagnostic
from kernel_linter.servers import McpServer
from kernel_linter.shell import words
from kernel_linter.words import shown

CODE = "MCP018"
SEVERITY = "info"
FIX = "none"
ON = "server"
SINCE = "0.1.0"

RUNNERS = {"npx": r"-y|--yes|-q|--quiet", "bunx": r"--bun|-y", "uvx": r"", "pnpx": r"", "dlx": r""}


def check(server: McpServer) -> Iterator[Diagnostic]:
    program = server.command.rpartition("/")[2].removesuffix(".cmd")
    args = list(server.args)
    if " " in server.command:
        program, *more = words(server.command)
        args = more + args
    if program not in RUNNERS:
        return
    package = next((args[i + 1] for i, a in enumerate(args[:-1]) if a in ("-p", "--package", "--from")), "") or next(
        (a for a in args if not a.startswith("-")), ""
    )
    if package and not package.startswith((".", "/", "$")) and not pinned(package):
        yield server.at(
            f"{shown(server.name)}: {program} {package} runs whatever was published last; name a version",
            "args" if server.args else "command",
        )
