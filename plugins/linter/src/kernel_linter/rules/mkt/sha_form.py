"""`sha` is not 40 lower-case hex digits. Fix: lower case.

Why: Entry refused.

Bad:

    "sha": "ABC123"

Good:

    "sha": "abc1…" (40)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "MKT021"
SEVERITY = "error"
FIX = "safe"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    sha = entry.fields.get("sha")
    if isinstance(sha, str) and not re.fullmatch(r"[0-9a-f]{40}", sha):
        fix = (
            entry.set_value(sha.lower(), "source", "sha", message="lower case") if re.fullmatch(r"[0-9a-fA-F]{40}", sha) else None
        )
        yield entry.at(f"source.sha: {shown(sha)} is not 40 lower-case hex digits", "source", "sha", fix=fix)
