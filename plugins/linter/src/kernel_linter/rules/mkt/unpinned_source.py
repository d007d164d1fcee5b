"""A git source without `sha`.

Why: What users get changes with every push, without review.

Bad:

    {"source": "github", "repo": "a/b"}

Good:

    {"source": "github", "repo": "a/b", "sha": "<40 hex>"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "MKT020"
SEVERITY = "info"
FIX = "none"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    if entry.kind in ("github", "url", "git-subdir") and not entry.fields.get("sha"):
        yield entry.at(
            f"source: {shown(entry.name)} is not pinned: name a sha, or every push reaches users without review", "source"
        )
