"""A hooks file is `[]`, `{}`, or `hooks` is a list. Fix for empty files: `{"hooks": {}}`.

Why: Load error, even though nothing was meant.

Bad:

    []

Good:

    {"hooks": {}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.tables import EVENTS
from kernel_linter.words import shown

CODE = "HOK003"
SEVERITY = "error"
FIX = "safe"
ON = "hook-file"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    if file.error:
        return
    data = file.data
    empty = data in ([], {}, None)
    if not isinstance(data, dict) or not data:
        node = file.node()
        fix = file.fix_span((node.start, node.end), '{"hooks": {}}', "write an empty hooks object") if node and empty else None
        yield file.at("must hold an object with a 'hooks' object", fix=fix)
    elif "hooks" in data and not isinstance(data["hooks"], dict):
        fix = file.put("{}", "hooks", message="write an empty object") if data["hooks"] in ([], None) else None
        yield file.at(f"hooks: Invalid input: expected record, found {shown(data['hooks'])}", "hooks", fix=fix)
    elif "hooks" not in data and not any(key in EVENTS for key in data):
        yield file.at("hooks: required: an object of events")
