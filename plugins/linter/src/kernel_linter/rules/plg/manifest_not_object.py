"""The top level of `plugin.json` is not an object.

Why: The plugin does not load.

Bad:

    []

Good:

    {"name": "fmt"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile

CODE = "PLG004"
SEVERITY = "error"
FIX = "none"
ON = "manifest"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    if not file.error and not isinstance(file.data, dict):
        yield file.at("must hold one JSON object; the plugin does not load")
