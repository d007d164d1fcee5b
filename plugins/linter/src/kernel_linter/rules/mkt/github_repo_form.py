"""`repo` is not `owner/name` (a URL, one word, a wildcard).

Why: Clone fails. The reference validator takes any string.

Bad:

    "repo": "https://github.com/a/b"

Good:

    "repo": "a/b"
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "MKT023"
SEVERITY = "error"
FIX = "safe"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    repo = entry.fields.get("repo")
    if entry.kind == "github" and isinstance(repo, str) and not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[\w.-]+", repo):
        found = re.match(r"(?:https?://|git@)(?:www\.)?github\.com[/:]([\w.-]+/[\w.-]+?)(?:\.git)?/?$", repo)
        yield entry.at(
            f"source.repo: {shown(repo)} is not owner/name",
            "source",
            "repo",
            fix=entry.set_value(found[1], "source", "repo", message=f"write {found[1]}") if found else None,
        )
