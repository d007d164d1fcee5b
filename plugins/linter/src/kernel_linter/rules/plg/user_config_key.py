"""A `userConfig` key is not an identifier.

Why: The manifest is rejected.

Bad:

    {"userConfig": {"api-key": {…}}}

Good:

    {"userConfig": {"api_key": {…}}}
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.words import shown

CODE = "PLG038"
SEVERITY = "error"
FIX = "none"
ON = "manifest entry"
SINCE = "0.1.0"

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check(target: JsonFile | Entry) -> Iterator[Diagnostic]:
    options = target.object.get("userConfig")
    for key in options if isinstance(options, dict) else ():
        if not IDENTIFIER.fullmatch(key):
            yield target.at(f"userConfig: {shown(key)} must be an identifier: letters, digits and underscores", "userConfig", key)
