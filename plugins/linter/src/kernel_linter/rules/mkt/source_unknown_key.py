"""A source object has keys its kind does not read (`path` or `commit` on `github`, `branch`).

Why: Ignored: the whole repository, or another commit, is installed.

Bad:

    {"source": "github", "repo": "a/b", "path": "p"}

Good:

    {"source": "git-subdir", "url": "a/b", "path": "p"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import SOURCES

CODE = "MKT022"
SEVERITY = "warning"
FIX = "none"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    if entry.kind in SOURCES:
        needs, more = SOURCES[entry.kind]
        for key in entry.fields:
            if key != "source" and key not in needs and key not in more:
                hint = (
                    "; the kind git-subdir takes it"
                    if key == "path"
                    else "; use ref or sha"
                    if key in ("branch", "commit", "tag")
                    else ""
                )
                yield entry.at(f"source.{key}: is not read by the kind {entry.kind}{hint}", "source", key)
