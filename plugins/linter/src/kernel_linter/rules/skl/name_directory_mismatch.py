"""`name` differs from the directory.

Why: In a plugin the command follows `name`, elsewhere the directory; other hosts require equality.

Bad:

    skills/plan with name: omc-plan

Good:

    the same word
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import KEBAB, shown

CODE = "SKL011"
SEVERITY = "info"
FIX = "unsafe"
ON = "skill"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    name = text.data.get("name")
    if isinstance(name, str) and name and text.path.absolute().parent.name != name and text.rel != "SKILL.md" and "/" in text.rel:
        yield text.at(
            f"name: {shown(name)} differs from the folder {shown(text.stem)}",
            "name",
            fix=text.set_field("name", text.stem, f"write {text.stem}", "unsafe") if KEBAB.match(text.stem) else None,
        )
