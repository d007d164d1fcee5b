"""A `command` source; error if not printable ASCII, over 500 characters, with 4+ spaces in a row, or `timeout` over 600.

Why: Runs a program on the user's machine; cannot be a dependency; administrators often block it.

Bad:

    {"source": "command", "command": "…"}

Good:

    archive or git source
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.manifests import number
from kernel_linter.rule import Diagnostic

CODE = "MKT025"
SEVERITY = "warning"
FIX = "none"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    if entry.kind != "command":
        return
    command, timeout = entry.fields.get("command"), entry.fields.get("timeout")
    wrong = ""
    if isinstance(command, str):
        wrong = (
            "is longer than 500 characters"
            if len(command) > 500
            else "must be printable ASCII"
            if not re.fullmatch(r"[ -~]*", command)
            else "has four or more spaces in a row"
            if "    " in command
            else ""
        )
    if wrong:
        yield entry.at(f"source.command: {wrong}; the entry is refused", "source", "command", severity="error")
    elif timeout is not None and not (number(timeout) and 0 < timeout <= 600):
        yield entry.at("source.timeout: must be a number of seconds up to 600", "source", "timeout", severity="error")
    else:
        yield entry.at("source: runs a program on the user's machine, needs acceptance and cannot be a dependency", "source")
