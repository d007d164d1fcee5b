"""No entry of `tools` resolves (foreign names such as `read`, `search`, `All tools`).

Why: The launch is refused.

Bad:

    tools: read, search

Good:

    tools: Read, Grep
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.tools import known

CODE = "AGT012"
SEVERITY = "error"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    extra = text.plugin.extra_tools if text.plugin else frozenset()
    entries = text.tools("tools")
    if entries and not any(known(e.name, extra) or e.name == "*" for e in entries):
        yield text.at("tools: no entry names a tool; the launch is refused (the agent would be spawned with zero tools)", "tools")
