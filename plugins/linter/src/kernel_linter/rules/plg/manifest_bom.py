"""`plugin.json` or another JSON file of the plugin starts with a byte-order mark.

Why: The reference parser stops at the first character; the plugin or the hooks file is lost.

Bad:

    (EF BB BF) {"name": "fmt"}

Good:

    {"name": "fmt"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile

CODE = "PLG002"
SEVERITY = "error"
FIX = "safe"
ON = "json"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    if file.bom and not file.path.name.startswith(("settings", "managed-settings")):
        yield file.at(
            "starts with a byte-order mark, which the host's parser refuses",
            span=(0, 1),
            fix=file.fix_span((0, 1), "", "remove the mark"),
        )
