"""A top-level key is one letter or two away from a known one.

Why: It is kept and ignored without a message.

Bad:

    {"permisions": {}}

Good:

    {"permissions": {}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.settings_table import TOP_KEYS
from kernel_linter.source import JsonFile
from kernel_linter.words import nearest

CODE = "SET004"
SEVERITY = "info"
FIX = "safe"
ON = "settings"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    for key in file.object:
        near = nearest(key, TOP_KEYS) if key not in TOP_KEYS else ""
        if near and near not in file.object:
            yield file.at(
                f"{key}: unknown key, ignored; did you mean {near}?",
                key,
                span=file.key_span(key),
                fix=file.rename_key(near, key, message=f"rename it to {near}"),
            )
