"""Inline `hooks` in the manifest is wrapped in another `hooks` object.

Why: The manifest is rejected.

Bad:

    {"hooks": {"hooks": {"Stop": […]}}}

Good:

    {"hooks": {"Stop": […]}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile

CODE = "PLG051"
SEVERITY = "error"
FIX = "safe"
ON = "manifest"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    value = file.object.get("hooks")
    for pointer, item in [
        (("hooks",), value),
        *((("hooks", i), v) for i, v in enumerate(value if isinstance(value, list) else ())),
    ]:
        if isinstance(item, dict) and isinstance(item.get("hooks"), dict):
            raw = file.raw_of(*pointer, "hooks")
            yield file.at(
                "hooks: the inline map must not be wrapped in another 'hooks' object",
                *pointer,
                fix=file.put(raw, *pointer, message="unwrap it") if raw else None,
            )
