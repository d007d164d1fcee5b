"""A matcher value the event never has (`SessionStart: init`, `PreCompact: full`).

Why: Never runs.

Bad:

    SessionStart "init"

Good:

    SessionStart "startup"
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.hooks_model import Group
from kernel_linter.jsregex import problem, translated
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import MATCH_VALUES
from kernel_linter.words import shown

CODE = "HOK018"
SEVERITY = "warning"
FIX = "none"
ON = "group"
SINCE = "0.1.0"


def check(group: Group) -> Iterator[Diagnostic]:
    values = MATCH_VALUES.get(group.event)
    if not values or not group.matcher:
        return
    if group.exact is not None:
        for name in group.exact:
            if name not in values:
                yield group.at(f"matcher: {shown(name)} is no value of {group.event}; it has {', '.join(values)}", "matcher")
    elif (
        group.expression
        and not problem(group.expression)
        and len(group.expression) < 200
        and not any(re.search(translated(group.expression), v) for v in values)
    ):
        yield group.at(
            f"matcher: {shown(group.expression)} fits no value of {group.event}; it has {', '.join(values)}", "matcher"
        )
