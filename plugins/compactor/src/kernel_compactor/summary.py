"""The strategy ``summary``: clear old results where that is enough, else sum the conversation up (context contract, 8)."""

from __future__ import annotations

from typing import Any, Literal

from kernel import KernelError, Leave, ModelError, Session
from kernel_compactor import counting, media, pins
from kernel_compactor.clearing import clear
from kernel_compactor.compaction import compact
from kernel_compactor.state import state

MAX_FAILURES = 3
MAX_REFILLS = 3
RIGHT_AFTER = 2
"""Requests; a window that is full again within so many is full for another reason than the conversation."""
Trigger = Literal["manual", "auto"]


class SummaryCompactor:
    """See ``kernel.Compactor``. What it knows of a session lies in ``session.plugin_state["compactor"]``."""

    name = "summary"

    async def before_request(self, session: Session) -> None:
        if dropped := media.make_room(session):
            session.debug(f"plugin compactor: {dropped} old images and documents were dropped")
        now = counting.used(session)
        mine = state(session)
        mine.requests += 1
        role, blocks = session.history.messages[-1]
        mine.fresh = mine.prompted and role == "user" and not any(b.get("type") == "tool_result" for b in blocks)
        mine.prompted = False
        if mine.fresh:
            mine.request = pins.prompt_of(blocks)
        if not counting.is_automatic(session):
            if now > counting.effective(session) and session.measured is not None:
                raise _blocked(now, counting.effective(session))
            return
        point = counting.trigger(session)
        if now < point:
            if session.parent is None and now >= point - counting.WARNING > 0 and mine.once("filling"):
                session.notice(f"the window is filling up: about {point - now:,} tokens are left", level="info")
            return
        if mine.failures >= MAX_FAILURES:
            return
        fixed = counting.fixed(session)
        if sum(fixed.values()) >= point:
            large = max(fixed, key=lambda part: fixed[part])
            if mine.once("floor"):
                session.notice(f"the window cannot be made to fit: the {large} alone takes about {fixed[large]:,} of the "
                               f"{point:,} tokens at which a conversation is summed up", guard=True)
            return
        cleared = clear(session, now - point + counting.BUFFER // 2)
        if cleared is not None:
            session.rewrite(cleared.messages)
            mine.receipts.append({"stage": "clear", "results": cleared.results, "tokens": cleared.saved, "files": cleared.files})
            session.debug(f"plugin compactor: {cleared.results} old results were cleared, about {cleared.saved} tokens")
            return
        self._count_refill(session)
        try:
            await compact(session, "auto", now)
            mine.failures = 0
        except KernelError as error:
            mine.failures += 1
            session.notice(f"the conversation could not be summed up: {error}"
                           + ("; it is not tried again by itself (/compact does)" if mine.failures >= MAX_FAILURES else ""))

    def _count_refill(self, session: Session) -> None:
        mine = state(session)
        mine.refills = mine.refills + 1 if mine.compacted and mine.requests <= RIGHT_AFTER else 0
        if mine.refills >= MAX_REFILLS:
            mine.refills = 0
            raise Leave("rapid_refill_breaker", "error_during_execution", errors=(
                f"The window was full again right after it had been summed up, {MAX_REFILLS} times in a row. Something large "
                "comes back each time: look for a huge file, result or instruction.",))

    async def too_long(self, session: Session, error: ModelError) -> bool:
        mine = state(session)
        if not counting.is_automatic(session) or mine.failures >= MAX_FAILURES:
            return False
        try:
            await compact(session, "auto", counting.used(session))
        except KernelError as problem:
            mine.failures += 1
            session.notice(f"the request was too long, and the conversation could not be summed up: {problem}")
            return False
        mine.failures = 0
        return True

    async def compact(self, session: Session, trigger: Trigger, instructions: str = "") -> str:
        if counting.is_off():
            raise KernelError("compaction is switched off (DISABLE_COMPACT)")
        receipt = await compact(session, trigger, counting.used(session), instructions)
        state(session).failures = 0
        return _words(receipt)


def _words(receipt: dict[str, Any]) -> str:
    return (f"Summed up: {receipt['messages']} messages, about {receipt['pre_tokens']:,} tokens, became about "
            f"{receipt['post_tokens']:,}. Kept: {', '.join(receipt['kept'])}. What came before is in {receipt['where']}.")


def _blocked(now: int, most: int) -> Leave:
    return Leave("blocking_limit", "error_during_execution", errors=(
        f"The conversation is full ({now:,} of {most:,} tokens) and compaction is off: "
        + ("use /clear, or unset DISABLE_COMPACT and use /compact." if counting.is_off() else "use /compact or /clear."),))
