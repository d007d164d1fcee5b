"""A `PreToolUse`/`PostToolUse` handler without matcher that starts `npx`, `uvx`, `docker` or a compiler.

Why: Adds seconds to every tool call.

Bad:

    no matcher, "npx x"

Good:

    matcher, async, or a cached program
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic
from kernel_linter.shell import SLOW
from kernel_linter.words import shown

CODE = "HOK035"
SEVERITY = "info"
FIX = "none"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    if (
        handler.event in ("PreToolUse", "PostToolUse")
        and handler.group.matcher in (None, "", "*", ".*")
        and not handler.data.get("async")
        and "if" not in handler.data
        and SLOW.search(handler.words)
    ):
        yield handler.at(
            f"command: {shown(handler.words)} starts a slow program at every tool call; give the group a matcher, or make it "
            f"async",
            "command",
        )
