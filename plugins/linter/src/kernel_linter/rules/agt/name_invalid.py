"""`name` contains `:` or starts with `-`.

Why: Not loaded (≥ 2.1.218).

Bad:

    name: team:reviewer

Good:

    name: reviewer
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "AGT005"
SEVERITY = "error"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    name = text.data.get("name")
    if isinstance(name, str) and (":" in name or name.startswith("-")):
        yield text.at(f"name: {shown(name)} must not contain ':' nor start with '-'; the agent is not loaded", "name")
