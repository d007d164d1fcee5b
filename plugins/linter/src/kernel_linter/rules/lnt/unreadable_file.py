"""A file that the host would read cannot be checked: it is too large (5 MB), no regular file, or not readable.

Why: Nobody knows what it holds; a named pipe would block the host.

Bad:

    skills/a/SKILL.md (a named pipe)

Good:

    skills/a/SKILL.md (a text file)
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import File

CODE = "LNT001"
SEVERITY = "error"
FIX = "none"
ON = "file"
SINCE = "0.1.0"


def check(file: File) -> Iterator[Diagnostic]:
    if file.problem:
        yield file.at(file.problem)
