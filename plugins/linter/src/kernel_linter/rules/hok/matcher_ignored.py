"""A non-trivial matcher on an event without matcher support.

Why: Runs always.

Bad:

    Stop, "matcher": "Bash"

Good:

    no matcher
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Group
from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.tables import EVENTS

CODE = "HOK016"
SEVERITY = "info"
FIX = "safe"
ON = "group"
SINCE = "0.1.0"


def check(group: Group) -> Iterator[Diagnostic]:
    if group.matcher not in (None, "", "*", ".*") and group.event in EVENTS and not group.takes_matcher:
        file = group.hooks.file
        yield group.at(
            f"matcher: {group.event} has none; the handlers always run",
            "matcher",
            fix=file.drop(*group.hooks.base, group.event, group.index, "matcher", message="remove it")
            if isinstance(file, JsonFile)
            else None,
        )
