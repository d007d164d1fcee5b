"""A group key other than `matcher` and `hooks` (`if`, `once`, `description`, `pathMatcher`). Fix: move `if` to the handlers.

Why: Ignored: a hook meant for `git push` runs on every command.

Bad:

    {"matcher": "Bash", "if": "Bash(git push*)", "hooks": […]}

Good:

    "if" inside the handler
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_help import move_into_handlers
from kernel_linter.hooks_model import Group
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "HOK006"
SEVERITY = "warning"
FIX = "unsafe"
ON = "group"
SINCE = "0.1.0"


def check(group: Group) -> Iterator[Diagnostic]:
    for key in group.data:
        if key in ("matcher", "hooks"):
            continue
        hint = "; it belongs into the handlers" if key in ("if", "once", "timeout", "async", "type", "command") else ""
        yield group.at(
            f"{shown(key)}: is ignored in a group{hint}", key, fix=move_into_handlers(group, key) if key == "if" else None
        )
