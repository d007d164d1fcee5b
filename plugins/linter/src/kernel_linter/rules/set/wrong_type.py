"""A known key of a settings file has the wrong type.

Why: The entry, or the whole file, is dropped.

Bad:

    {"permissions": {"allow": "Bash"}}

Good:

    {"permissions": {"allow": ["Bash(ls *)"]}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.settings_table import SETTINGS, flat
from kernel_linter.source import JsonFile
from kernel_linter.types import described, fits
from kernel_linter.words import shown

CODE = "SET002"
SEVERITY = "error"
FIX = "none"
ON = "settings"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    for path, value in flat(file.object):
        word = SETTINGS.get(path)
        if word and value is not None and not fits(word, value):
            yield file.at(f"{path}: expected {described(word)}, found {shown(value)}", *path.split("."))
