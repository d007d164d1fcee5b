"""A `SubagentStart`/`SubagentStop` matcher with a colon and no anchors. Fix: `^…$`.

Why: Unanchored regular expression: also matches longer names.

Bad:

    "acme:db"

Good:

    "^acme:db$"
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.hooks_model import Group
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "HOK020"
SEVERITY = "warning"
FIX = "safe"
ON = "group"
SINCE = "0.1.0"


def check(group: Group) -> Iterator[Diagnostic]:
    if (
        group.event in ("SubagentStart", "SubagentStop")
        and group.expression
        and re.fullmatch(r"[\w-]+(?::[\w-]+)+", group.expression)
    ):
        yield group.at(
            f"matcher: {shown(group.expression)} has a colon, so it is an unanchored expression and matches longer names too",
            "matcher",
            fix=group.set_matcher(f"^{group.expression}$", "anchor it"),
        )
