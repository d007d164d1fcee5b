"""Under 30 characters, or equal to the name.

Why: Rarely triggers.

Bad:

    description: Helps

Good:

    description: Formats SQL. Use when editing .sql files
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL009"
SEVERITY = "info"
FIX = "none"
ON = "skill"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.description and (len(text.description.strip()) < 30 or text.description.strip().lower() == text.name.lower()):
        yield text.at("description: says too little for the model to know when to use it", "description")
