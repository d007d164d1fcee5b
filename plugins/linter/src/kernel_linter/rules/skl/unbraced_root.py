"""(text) `$CLAUDE_PLUGIN_ROOT` without braces in skill, command or agent text.

Why: Not substituted, not in the Bash environment: expands to nothing.

Bad:

    bash $CLAUDE_PLUGIN_ROOT/x.sh

Good:

    bash "${CLAUDE_PLUGIN_ROOT}/x.sh"
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL046"
SEVERITY = "error"
FIX = "safe"
ON = "text"
SINCE = "0.1.0"

BARE = re.compile(r"\$(CLAUDE_PLUGIN_ROOT|CLAUDE_PLUGIN_DATA|CLAUDE_SKILL_DIR)\b(?!\})")


def check(text: TextFile) -> Iterator[Diagnostic]:
    if not text.plugin and text.in_plugin:
        return
    for match in BARE.finditer(text.text, text.front.body):
        if text.text[match.start() - 1 : match.start()] != "\\":
            yield text.at(
                f"{match[0]} without braces is not replaced and expands to nothing",
                span=match.span(),
                fix=text.fix_span(match.span(), f"${{{match[1]}}}", "add the braces"),
            )
