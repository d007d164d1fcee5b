"""Event name unknown or in the wrong case. Fix for case.

Why: The whole file is rejected.

Bad:

    "preToolUse"

Good:

    "PreToolUse"
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel import EVENTS as KNOWN
from kernel_linter.hooks_model import HookMap
from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.tables import EVENTS
from kernel_linter.words import nearest, shown

CODE = "HOK004"
SEVERITY = "error"
FIX = "safe"
ON = "hooks"
SINCE = "0.1.0"

LOWER = {event.lower(): event for event in EVENTS}


def check(hooks: HookMap) -> Iterator[Diagnostic]:
    for event, _ in hooks.events:
        if event in EVENTS or event in KNOWN:
            continue
        right = LOWER.get(re.sub(r"[-_ ]", "", event).lower())
        near = right or nearest(event, EVENTS)
        fix = (
            hooks.file.rename_key(right, *hooks.base, event, message=f"write {right}")
            if right and isinstance(hooks.file, JsonFile)
            else None
        )
        yield hooks.at(
            f"{shown(event)} is no event" + (f"; did you mean {near}?" if near else f"; known: {', '.join(sorted(EVENTS))}"),
            event,
            span=hooks.file.key_span(*hooks.base, event) if isinstance(hooks.file, JsonFile) else None,
            fix=fix,
        )
