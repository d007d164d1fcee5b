"""`model` is no known alias, no `claude-` id, not `inherit`. Also agents.

Why: Ignored or an error at run time.

Bad:

    model: gpt-4

Good:

    model: sonnet
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import MODEL_ALIASES
from kernel_linter.words import shown

CODE = "SKL027"
SEVERITY = "warning"
FIX = "none"
ON = "skill command agent"
SINCE = "0.1.0"

MODEL = re.compile(
    r"claude-[a-z0-9.@:-]+(?:\[1m\])?|(?:us|eu|apac|global)\.anthropic\.[\w.:-]+|anthropic\.[\w.:-]+|arn:aws:.*|.*/claude-.*",
    re.IGNORECASE,
)


def check(text: TextFile) -> Iterator[Diagnostic]:
    value = text.data.get("model")
    if value is not None and not (
        isinstance(value, str) and (value.lower() in MODEL_ALIASES or MODEL.fullmatch(value) or not value)
    ):
        yield text.at(f"model: {shown(value)} is no known alias, no claude- id and not inherit", "model", about=str(value))
