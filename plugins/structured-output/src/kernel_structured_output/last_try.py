"""The last try: the model is made to call the tool, where nothing speaks against it (section 3, rule 11)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from kernel import ModelCaller, ModelRequest, Session, StreamEvent
from kernel_structured_output.state import attempts, max_retries

STATE = "structured-output.last-try"


def begin(session: Session, tool: str) -> None:
    """Force the tool for the next request, if it is the last retry, nothing else is missing, and the model does not think."""
    run = attempts(session)
    thinking = (session.request().thinking or {}).get("type", "disabled") != "disabled"
    if run.failed and run.failed == max_retries() and not thinking and not run.scopes:
        session.call_model = session.plugin_state[STATE] = Forced(session, tool)


def end(session: Session) -> None:
    forced: Forced | None = session.plugin_state.pop(STATE, None)
    if forced is not None:
        forced.on = False  # another may stand around it by now
        if session.call_model is forced:
            session.call_model = forced.plain


class Forced:
    """Sends the conversation's own request with the tool as the only choice, while ``on``."""

    def __init__(self, session: Session, tool: str) -> None:
        self.on = True
        self.session = session
        self.tool = tool
        self.plain: ModelCaller = session.call_model

    def __call__(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if self.on and request.history is self.session.history and request.tool_choice is None:
            request = msgspec.structs.replace(request, tool_choice={"type": "tool", "name": self.tool})
        return self.plain(request)
