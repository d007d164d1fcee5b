"""`category`, `tags`, `strict`, `source`, `relevance` in `plugin.json`. Fix: remove.

Why: They are read only in a catalogue entry; old hosts refuse the manifest.

Bad:

    {"name": "x", "category": "dev"}

Good:

    {"name": "x"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.tables import ENTRY_ONLY

CODE = "PLG020"
SEVERITY = "warning"
FIX = "safe"
ON = "manifest"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    for key in ENTRY_ONLY:
        if key in file.object:
            yield file.at(
                f"{key}: belongs to a marketplace entry and is not read here",
                key,
                span=file.key_span(key),
                fix=file.drop(key, message="remove it"),
            )
