"""`context: fork` and the text has no imperative step and no argument token.

Why: The fork returns nothing useful.

Bad:

    guidelines only

Good:

    "Research $ARGUMENTS …"
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL026"
SEVERITY = "info"
FIX = "none"
ON = "skill command"
SINCE = "0.1.0"

STEP = re.compile(
    r"^\s*(?:\d+[.)]|[-*] \[ \])\s|\b(?:research|find|run|review|create|write|analy[sz]e|check|list|read|search|report|return"
    r"|generate|"
    r"inspect|explore|fix|implement|summari[sz]e|use|test|verify|collect|identify|look|build|update|execute|perform)\b",
    re.IGNORECASE | re.MULTILINE,
)


def check(text: TextFile) -> Iterator[Diagnostic]:
    if (
        text.data.get("context") == "fork"
        and not STEP.search(text.masked)
        and not re.search(r"\$(?:ARGUMENTS|\d|[a-z])", text.body)
    ):
        yield text.at("context: fork needs a task in the text; guidelines alone give nothing back", "context")
