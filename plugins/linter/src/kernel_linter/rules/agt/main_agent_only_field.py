"""`initialPrompt` or `Agent(a, b)` in an agent that is never the main agent.

Why: No effect in a subagent.

Bad:

    initialPrompt: start

Good:

    —
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import main_agents
from kernel_linter.words import shown

CODE = "AGT025"
SEVERITY = "info"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    mains = main_agents(text.plugin) if text.plugin else frozenset()
    if text.plugin and text.name not in mains:
        if "initialPrompt" in text.data:
            yield text.at("initialPrompt: is read for the main agent only", "initialPrompt")
        for entry in text.tools("tools"):
            if entry.name in ("Agent", "Task") and entry.specifier:
                yield text.at(f"tools: the list in {shown(entry.raw)} counts for the main agent only", "tools")
