"""`tools` lists a tool subagents never get (`AskUserQuestion`, `EnterPlanMode`, `EndConversation`, `ScheduleWakeup`,
`TaskOutput`, `Workflow`, `WaitForMcpServers`), or one that background runs lose.

Why: Silently removed.

Bad:

    tools: AskUserQuestion

Good:

    return questions in the report
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.tools import BACKGROUND, BUILT_IN, NOT_FOR_SUBAGENTS

CODE = "AGT015"
SEVERITY = "warning"
FIX = "none"
ON = "agent"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    background = text.flag("background", False)
    for entry in text.tools("tools"):
        if entry.name in NOT_FOR_SUBAGENTS:
            yield text.at(f"tools: {entry.name} is never given to a subagent", "tools")
        elif background and entry.name in BUILT_IN and entry.name not in BACKGROUND:
            yield text.at(f"tools: {entry.name} is not given to an agent that runs in the background", "tools")
