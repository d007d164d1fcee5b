"""A tool-event matcher written like a permission rule. Fix: `matcher` the tool, `if` the rule.

Why: Read as a regular expression on the tool name; never matches.

Bad:

    "matcher": "Write(docs/**)"

Good:

    "matcher": "Write", … "if": "Write(docs/**)"
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.hooks_help import problem_free_alternative, rule_to_if, split_matcher
from kernel_linter.hooks_model import Group
from kernel_linter.rule import Diagnostic
from kernel_linter.tools import BUILT_IN
from kernel_linter.words import shown

CODE = "HOK015"
SEVERITY = "error"
FIX = "unsafe"
ON = "group"
SINCE = "0.1.0"

RULE = re.compile(r"^([A-Z][A-Za-z]+)\((.*)\)$", re.DOTALL)
PATH_LIKE = re.compile(r"\*\*|\*\.\w|^\*|\s\*|:\*|/|^[a-z][\w-]* |^\.\w|^~|^domain:|\.\w+$")


def check(group: Group) -> Iterator[Diagnostic]:
    matcher = group.matcher
    if not group.on_tool or not matcher:
        return
    for part in split_matcher(matcher):
        found = RULE.match(part)
        if found and found[1] in BUILT_IN and not problem_free_alternative(found[2], PATH_LIKE):
            alone = part == matcher
            fix = rule_to_if(group, found[1], matcher) if alone else None
            yield group.at(
                f"matcher: {shown(part)} is written like a permission rule but read as a regular expression on the tool name; "
                f"it never matches",
                "matcher",
                fix=fix,
            )
