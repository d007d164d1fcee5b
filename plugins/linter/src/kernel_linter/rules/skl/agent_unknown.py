"""`agent` names no built-in type and no agent of the plugin.

Why: Falls back or fails.

Bad:

    agent: Explorer

Good:

    agent: Explore
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.tools import BUILT_IN_AGENTS
from kernel_linter.words import shown

CODE = "SKL025"
SEVERITY = "warning"
FIX = "none"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    agent = text.data.get("agent")
    names = text.plugin.agent_names if text.plugin else frozenset()
    if (
        isinstance(agent, str)
        and agent
        and text.plugin
        and agent not in BUILT_IN_AGENTS
        and agent not in names
        and ":" not in agent
    ):
        yield text.at(f"agent: {shown(agent)} is no built-in type and no agent of this plugin", "agent", about=agent)
