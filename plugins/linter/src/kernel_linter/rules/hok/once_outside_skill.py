"""`once` outside skill frontmatter.

Why: Ignored.

Bad:

    hooks.json "once": true

Good:

    remove
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic

CODE = "HOK026"
SEVERITY = "info"
FIX = "safe"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    if "once" in handler.data and handler.home != "skill":
        yield handler.at("once: is read in the frontmatter of a skill only", "once", fix=handler.drop("once", "remove it"))
