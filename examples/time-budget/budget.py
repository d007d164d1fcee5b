"""A time budget for every prompt, as command hooks. Python's standard library only; see the README for the channels.

The event comes as JSON on stdin, the answer goes as JSON to stdout; no output means no objection.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

BASH_DEFAULT_MS = 120_000
"""What Bash takes where a call names no timeout."""


def number(name: str, default: float) -> float:
    """An option of the plugin; the host passes it in the environment."""
    return float(os.environ.get(f"CLAUDE_PLUGIN_OPTION_{name}") or default)


class Budget:
    """The deadline of the running prompt, kept between two hooks in a file of the plugin's own folder."""

    def __init__(self, session: str) -> None:
        self.seconds = number("SECONDS", 600)
        self.last_phase = number("LAST_PHASE", 60)
        self._file = Path(os.environ["CLAUDE_PLUGIN_DATA"]) / f"{''.join(c for c in session if c.isalnum() or c == '-')}.deadline"

    def start(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(repr(time.time() + self.seconds))

    @property
    def left(self) -> float:
        """Seconds; a clock that was never started starts now."""
        if not self._file.exists():
            self.start()
        return float(self._file.read_text()) - time.time()

    def forget(self) -> None:
        self._file.unlink(missing_ok=True)


def answer(event: dict[str, Any], budget: Budget) -> dict[str, Any] | None:
    name = event["hook_event_name"]
    if name == "UserPromptSubmit":
        budget.start()
        return context(name, f"You have {budget.seconds:.0f} seconds for this. In the last {budget.last_phase:.0f} seconds no "
                             "tool is started any more: have your answer ready by then.")
    if name == "SessionEnd":
        budget.forget()
        return None
    left = budget.left
    if name in ("PreToolUse", "PostToolBatch") and left <= 0:
        return {"continue": False, "stopReason": f"The time budget of {budget.seconds:.0f} seconds is used up."}
    if name == "PreToolUse":
        return before_tool(event, budget, left)
    if name in ("PostToolUse", "PostToolUseFailure"):
        return context(name, f"{max(left, 0):.0f} seconds of {budget.seconds:.0f} are left.")
    return None


def before_tool(event: dict[str, Any], budget: Budget, left: float) -> dict[str, Any] | None:
    """Refuse in the last phase; let no command run past the deadline."""
    if left <= budget.last_phase:
        return own("PreToolUse", permissionDecision="deny", permissionDecisionReason=(
            f"Only {left:.0f} seconds are left, so no new tool is started. Answer now with what you have."))
    given = event["tool_input"]
    asked = given.get("timeout", BASH_DEFAULT_MS)
    if event["tool_name"] == "Bash" and isinstance(asked, int | float) and asked > left * 1000:
        return own("PreToolUse", updatedInput={**given, "timeout": int(left * 1000)})
    return None


def context(event: str, text: str) -> dict[str, Any]:
    return own(event, additionalContext=text)


def own(event: str, **fields: Any) -> dict[str, Any]:
    """The fields of one event; without its name the host drops the whole answer."""
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def main() -> None:
    event = json.load(sys.stdin)
    said = answer(event, Budget(event["session_id"]))
    if said is not None:
        print(json.dumps(said))


if __name__ == "__main__":
    main()
