"""(text) `${CLAUDE_PLUGIN_ROOT:-…}` or another expansion form.

Why: Never substituted; the default is used in every real install.

Bad:

    ${CLAUDE_PLUGIN_ROOT:-.}/x.sh

Good:

    ${CLAUDE_PLUGIN_ROOT}/x.sh
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "SKL047"
SEVERITY = "error"
FIX = "unsafe"
ON = "text"
SINCE = "0.1.0"

FORM = re.compile(r"\$\{(CLAUDE_PLUGIN_ROOT|CLAUDE_PLUGIN_DATA|CLAUDE_SKILL_DIR)(?:[:#%/^,@!?+=-][^}\n]*)\}")


def check(text: TextFile) -> Iterator[Diagnostic]:
    for match in FORM.finditer(text.text, text.front.body):
        yield text.at(
            f"{shown(match[0])} is never replaced: the shell takes the default in every real install",
            span=match.span(),
            fix=text.fix_span(match.span(), f"${{{match[1]}}}", "use the plain token", "unsafe"),
        )
