"""A matcher with regex characters that does not compile as a JavaScript regular expression.

Why: Never matches.

Bad:

    "*.php|*.ts"

Good:

    "Write|Edit" plus "if": "Edit(**/*.php)"
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Group
from kernel_linter.jsregex import problem
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "HOK014"
SEVERITY = "error"
FIX = "none"
ON = "group"
SINCE = "0.1.0"


def check(group: Group) -> Iterator[Diagnostic]:
    if group.expression and group.takes_matcher and (why := problem(group.expression)):
        yield group.at(f"matcher: {shown(group.expression)} is no regular expression ({why}); it never matches", "matcher")
