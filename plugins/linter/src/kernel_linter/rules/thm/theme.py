"""A theme is not an object, has an unknown `base`, or a colour in no accepted form.

Why: Ignored tokens, wrong colours.

Bad:

    "base": "darker"

Good:

    "base": "dark"
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.tables import THEME_BASES
from kernel_linter.words import shown

CODE = "THM001"
SEVERITY = "warning"
FIX = "none"
ON = "theme"
SINCE = "0.1.0"

COLOR = re.compile(
    r"#[0-9a-fA-F]{3}(?:[0-9a-fA-F]{3})?|rgb\(\s*\d{1,3}\s*,\s*\d{1,3}\s*,\s*\d{1,3}\s*\)|ansi256\(\d{1,3}\)|ansi:\w+"
)


def check(file: JsonFile) -> Iterator[Diagnostic]:
    if file.problem:
        return
    if not isinstance(file.data, dict):
        yield file.at_error(f"must hold one JSON object{': ' + file.error if file.error else ''}")
        return
    base = file.object.get("base")
    if base is not None and base not in THEME_BASES:
        yield file.at(f"base: {shown(base)} is none of {', '.join(THEME_BASES)}", "base")
    overrides = file.object.get("overrides")
    if overrides is not None and not isinstance(overrides, dict):
        yield file.at("overrides: must be an object of colours", "overrides")
    for key, value in overrides.items() if isinstance(overrides, dict) else ():
        if not isinstance(value, str) or not COLOR.fullmatch(value):
            yield file.at(
                f"overrides.{key}: {shown(value)} is no colour: #rrggbb, #rgb, rgb(), ansi256(n) or ansi:name", "overrides", key
            )
