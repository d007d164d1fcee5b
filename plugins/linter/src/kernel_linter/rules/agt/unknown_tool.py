"""Unknown entry in `tools` or `disallowedTools`.

Why: Dropped.

Bad:

    tools: Grpe

Good:

    tools: Grep
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import looks_like_rest
from kernel_linter.tools import REMOVED, known, near
from kernel_linter.words import shown

CODE = "AGT011"
SEVERITY = "warning"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    extra = text.plugin.extra_tools if text.plugin else frozenset()
    for key in ("tools", "disallowedTools"):
        for entry in text.tools(key):
            if (
                not known(entry.name, extra)
                and entry.name not in REMOVED
                and entry.name != "*"
                and not looks_like_rest(entry.raw)
            ):
                yield text.at(f"{key}: {shown(entry.raw)} names no tool{near(entry.name, extra)}", key, about=entry.name)
