"""Commands that run outside the sandbox by setting (``sandbox.excludedCommands``), with the usual permission.

The policy's matcher answers for the ``if`` of hooks as well, and therefore says yes to whatever it cannot read. Here
that would open the sandbox, so a line has to be plain: each of its commands is excluded, or only shows what another one
printed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Matcher = Callable[[str, str, dict[str, Any]], bool]

_NOTHING = "kernel-sandbox-no-such-command-"
_COMPANIONS = frozenset("cd echo grep head sort tail true uniq wc".split())
"""May stand beside an excluded command. They are no exception from permission, only from having to be excluded too."""


def covers(patterns: Sequence[str], input: dict[str, Any], matches: Matcher) -> bool:
    """Whether the call runs outside."""
    command = input.get("command")
    if not patterns or not isinstance(command, str):
        return False
    parts = split(command)
    if not parts:
        return False
    found = [any(_covered(pattern, part, input, matches) for pattern in patterns) for part in parts]
    return any(found) and all(hit or part.split()[0] in _COMPANIONS for hit, part in zip(found, parts, strict=True))


def _covered(pattern: str, command: str, input: dict[str, Any], matches: Matcher) -> bool:
    """A pattern of the same shape that can match nothing tells whether the policy can read the command at all."""
    call = {**input, "command": command}
    return matches(f"Bash({pattern})", "Bash", call) and not matches(f"Bash({_NOTHING}{pattern})", "Bash", call)


def split(command: str) -> list[str] | None:
    """The commands of a line of plain words, joined by ``;`` ``&&`` ``||`` ``|``; ``None`` for everything else."""
    parts: list[str] = [""]
    quote = ""
    i = 0
    while i < len(command):
        c = command[i]
        i += 1
        if c in "`\n\r(){}" or (c == "$" and quote != "'" and command[i:i + 1] in ("(", "{", "'", '"')):
            return None
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c == "\\":
            return None
        elif c == "&" and command[i:i + 1] != "&" and (parts[-1].endswith((">", "<")) or command[i:i + 1] == ">"):
            pass  # 2>&1, &>file
        elif c in ";|&":
            joined = command[i:i + 1]
            if c == "&" and joined != "&":
                return None  # in the background
            i += 1 if joined == c or (c == "|" and joined == "&") else 0
            parts.append("")
            continue
        parts[-1] += c
    found = [part.strip() for part in parts]
    return None if quote or not all(found) else found
