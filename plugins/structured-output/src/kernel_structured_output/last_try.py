"""The last try: the model is made to call the tool, where nothing speaks against it (section 3, rule 11)."""

from __future__ import annotations

from kernel import Session
from kernel_structured_output.state import attempts, max_retries


def begin(session: Session, tool: str) -> None:
    """Force the tool for the next request, if it is the last retry, nothing else is missing, and the model does not think."""
    run = attempts(session)
    thinking = (session.request().thinking or {}).get("type", "disabled") != "disabled"
    if run.failed and run.failed == max_retries() and not thinking and not run.scopes:
        session.once.setdefault("tool_choice", {"type": "tool", "name": tool})
