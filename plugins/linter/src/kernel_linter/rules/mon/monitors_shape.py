"""`monitors.json` is not a list of objects with `name`, `command`, `description`; names repeat.

Why: The monitor does not start.

Bad:

    {"name": …}

Good:

    [{"name": …, "command": …, "description": …}]
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.words import counted, shown

CODE = "MON001"
SEVERITY = "error"
FIX = "none"
ON = "monitor-file"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    if file.problem:
        return
    if file.error:
        yield file.at_error(f"is not valid JSON: {file.error}")
        return
    if not isinstance(file.data, list):
        yield file.at("must hold a list of objects with name, command and description")
        return
    for index, item in enumerate(file.data):
        missing = [
            k
            for k in ("name", "command", "description")
            if not (isinstance(item, dict) and isinstance(item.get(k), str) and item[k].strip())
        ]
        if missing:
            yield file.at(f"monitor {index}: {', '.join(missing)} required: text", index)
    for name, same in counted(
        [m.get("name") for m in file.data if isinstance(m, dict) and isinstance(m.get("name"), str)]
    ).items():
        yield file.at(f"name: {shown(name)} comes twice", same[1], "name")
