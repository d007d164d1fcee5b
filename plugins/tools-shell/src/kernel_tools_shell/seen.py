"""Commands that show one file count as reading it, so that it may be edited afterwards (tools contract, 4.3)."""

from __future__ import annotations

import os
import re
import stat

from kernel import ReadState, ToolContext
from kernel_tools_shell.words import simple_commands

MAX_BYTES = 10_000_000
_JOINS = re.compile(r"[|<>&;$`*?\[\n]")
_WHOLE = frozenset("cat nl bat batcat".split())
_ENDS = frozenset("head tail".split())
_SEARCH = frozenset("grep egrep fgrep rg".split())
_COUNTS = frozenset(("-n", "-c", "--lines", "--bytes"))
_LINES = re.compile(r"\d+(,\d+)?p")


def shown_file(text: str) -> str | None:
    """The file that the command shows, where it is one command for one file, without pipes or redirection."""
    commands = None if _JOINS.search(text.strip()) else simple_commands(text)
    if commands is None or len(commands) != 1:
        return None
    name, *rest = commands[0]
    operands = [word for word in rest if not word.startswith("-")]
    if name in _ENDS:
        operands = [word for n, word in enumerate(rest) if not word.startswith("-") and (n == 0 or rest[n - 1] not in _COUNTS)]
    elif name in _SEARCH:
        operands = [] if any(word.startswith(("-e", "-f", "--regexp", "--file")) for word in rest) else operands[1:]
    elif name == "sed":
        operands = rest[2:] if len(rest) == 3 and rest[0] == "-n" and _LINES.fullmatch(rest[1]) else []
    elif name not in _WHOLE:
        operands = []
    return operands[0] if len(operands) == 1 and not operands[0].startswith("~") else None


def note(context: ToolContext, cwd: str, text: str) -> None:
    """Keep the state of the file that the command showed, if it showed one."""
    shown = shown_file(text)
    if shown is None:
        return
    from hashlib import sha256

    real = os.path.realpath(os.path.join(cwd, shown))
    try:
        found = os.stat(real)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
            return
        with open(real, "rb") as file:
            digest = sha256(file.read()).hexdigest()
    except OSError:
        return
    known = context.read_files.get(real)
    if known is None or known.partial or known.digest != digest:
        context.read_files[real] = ReadState(mtime_ns=found.st_mtime_ns, size=found.st_size, digest=digest)
