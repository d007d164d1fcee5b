"""A `.md` under `agents/` that is documentation.

Why: Becomes an agent.

Bad:

    agents/README.md

Good:

    docs/agents.md
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import STRAY

CODE = "AGT024"
SEVERITY = "warning"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.path.name.lower() in STRAY:
        yield text.at(f"{text.path.name}: becomes an agent; move documentation elsewhere")
