"""Shell form with an unquoted `${CLAUDE_PLUGIN_ROOT}`, `${CLAUDE_PLUGIN_DATA}` or `${CLAUDE_PROJECT_DIR}`. Fix: quote, or use
`args`.

Why: Breaks for every user whose home path has a space.

Bad:

    bash ${CLAUDE_PLUGIN_ROOT}/x.sh

Good:

    bash "${CLAUDE_PLUGIN_ROOT}"/x.sh
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic
from kernel_linter.shell import quoted_roots

CODE = "HOK024"
SEVERITY = "warning"
FIX = "safe"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    if not handler.shell_form or handler.data.get("shell") == "powershell":
        return
    found = quoted_roots(handler.command)
    if found:
        first, text = found
        yield handler.at(
            f"command: {first} is not quoted: it breaks for every path with a space",
            "command",
            fix=handler.set_value("command", text, "quote it"),
        )
