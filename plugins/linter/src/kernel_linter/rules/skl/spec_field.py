"""(profile `spec`) Any field outside the six of the open specification.

Why: Upload and packaging fail.

Bad:

    argument-hint: x

Good:

    none
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import SPEC_FIELDS
from kernel_linter.words import shown

CODE = "SKL057"
SEVERITY = "info"
FIX = "none"
ON = "skill"
SINCE = "0.1.0"
PROFILE = "spec"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for key in text.data:
        if key not in SPEC_FIELDS:
            yield text.at(f"{shown(key)}: the open specification knows {', '.join(SPEC_FIELDS)} only", key)
