"""`name` or `paths` in a command file.

Why: Ignored; the file name counts.

Bad:

    name: deploy

Good:

    (file name)
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "CMD005"
SEVERITY = "info"
FIX = "none"
ON = "command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for key in ("name", "paths"):
        if key in text.data and text.path.name != "SKILL.md":
            yield text.at(f"{key}: is not read in a command file" + ("; the file name counts" if key == "name" else ""), key)
