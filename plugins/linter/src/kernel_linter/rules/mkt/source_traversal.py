"""`..` in a path source or in `git-subdir.path`.

Why: Refused.

Bad:

    {"source": "../x"}

Good:

    {"source": "./x"}
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "MKT012"
SEVERITY = "error"
FIX = "none"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    source = entry.source
    if entry.traverses:
        yield entry.at(f"source: {shown(source)} has a '..' segment, which is refused (path traversal)", "source")
    path = entry.fields.get("path")
    if entry.kind == "git-subdir" and isinstance(path, str) and (".." in re.split(r"[/\\]", path) or path.startswith("/")):
        yield entry.at(f"source.path: {shown(path)} must stay inside the repository", "source", "path")
