"""`themes` or `monitors` at top level.

Why: Still loads, will stop. Fix: move under `experimental`.

Bad:

    {"themes": "./themes/"}

Good:

    {"experimental": {"themes": "./themes/"}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile

CODE = "PLG021"
SEVERITY = "warning"
FIX = "safe"
ON = "manifest"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    for key in ("themes", "monitors"):
        if key in file.object:
            node = file.node(key)
            alone = node and node.key and "experimental" not in file.object and not {"themes", "monitors"} <= set(file.object)
            fix = (
                file.fix_span(
                    (node.key[0], node.end), f'"experimental": {{"{key}": {file.raw_of(key)}}}', "move it under experimental"
                )
                if node and node.key and alone
                else None
            )
            yield file.at(
                f"{key}: belongs under experimental; at the top level it will stop loading", key, span=file.key_span(key), fix=fix
            )
