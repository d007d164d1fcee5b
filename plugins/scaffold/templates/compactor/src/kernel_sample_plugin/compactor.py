"""The compactor ``sample-plugin``: clears the results of old tool calls. No model is asked, and nothing else is lost."""

from __future__ import annotations

from typing import Literal

from kernel import Block, History, KernelError, ModelError, Session

CLEARED = "(cleared to make room; call the tool again if it is needed)"
KEPT = 3
"""Results that are never cleared, from the end."""
BYTES_PER_TOKEN = 3
FULL = 0.8


class SamplePluginCompactor:
    """Registered under ``name``; the setting ``kernel.compactor`` chooses it.

    :param limit: bytes of history at which old results are cleared; four fifths of the model's window by default.
    """

    name = "sample-plugin"

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit

    async def before_request(self, session: Session) -> None:
        limit = self._limit or int(session.model_info.context_window * BYTES_PER_TOKEN * FULL)
        if len(session.history.encode()) > limit:
            clear(session)

    async def too_long(self, session: Session, error: ModelError) -> bool:
        return clear(session) > 0

    async def compact(self, session: Session, trigger: Literal["manual", "auto"], instructions: str = "") -> str:
        count = clear(session)
        if not count:
            raise KernelError("there is no old tool result to clear")
        return f"{count} old tool results were cleared."


def clear(session: Session) -> int:
    """Replace the content of old results and return how many there were. Calls keep their results, so the history stays legal."""
    results = [b for _, blocks in session.history.messages for b in blocks if b.get("type") == "tool_result"]
    old = {id(b) for b in results[:-KEPT] if b["content"] != CLEARED}

    def cleared(block: Block) -> Block:
        return {**block, "content": CLEARED} if id(block) in old else block

    if old:  # blocks in a history are never changed; a new one takes its place
        session.history = History([(role, [cleared(b) for b in blocks]) for role, blocks in session.history.messages])
    return len(old)
