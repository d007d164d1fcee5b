"""A key besides `hooks`, `description`, `$schema` in a hooks file.

Why: Ignored, sometimes a whole second event map.

Bad:

    {"hooks": {}, "PostToolUse": […]}

Good:

    inside "hooks"
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.tables import EVENTS
from kernel_linter.words import shown

CODE = "HOK031"
SEVERITY = "info"
FIX = "none"
ON = "hook-file"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    if isinstance(file.object.get("hooks"), dict):
        for key in file.object:
            if key not in ("hooks", "description", "$schema"):
                hint = "; events stand under 'hooks'" if key in EVENTS else ""
                yield file.at(f"{shown(key)}: is ignored{hint}", key, span=file.key_span(key))
