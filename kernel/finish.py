"""An answer without a tool call: whether the turn is over (loop contract, section 3; hooks contract, section 14)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.extension import each
from kernel.leave import Leave
from kernel.messages import text_block, text_of
from kernel.models import Response
from kernel.outcome import Turn
from kernel.record import add, close_calls
from kernel.variables import env_number

if TYPE_CHECKING:
    from kernel.session import Session

MAX_PAUSES = 5
MAX_CONTINUATIONS = 3
STOP_CAP = 8
CONTINUE = "Go on."
GO_ON_CUT = "Your answer was cut off. Go on exactly where it stopped, without repeating anything."
SPLIT_CALL = "Your last tool call was cut off because it was too long, so it was not run. Split it into smaller calls."
INCOMPLETE = "The connection was lost while the model was answering; the response may be incomplete."


async def goes_on(session: Session, turn: Turn, response: Response) -> bool:
    """Act on the stop reason (section 3); false where the turn is over."""
    text = text_of(response.blocks)
    reason = response.stop_reason
    if reason == "refusal":
        close_calls(session, "Not run: the answer was refused.")
        details = response.stop_details or {}
        raise Leave("completed", stop_reason="refusal", is_error=True,
                    text=text or str(details.get("explanation") or "The model refused to answer."))
    if response.incomplete:
        shown = f"{text}\n\n{INCOMPLETE}" if text else INCOMPLETE
        raise Leave("api_error", stop_reason=reason, text=shown, is_error=True)
    if reason == "pause_turn":
        turn.pauses += 1
        if turn.pauses > MAX_PAUSES:
            raise Leave("model_error", "error_during_execution", stop_reason=reason,
                        errors=(f"The model paused {turn.pauses} times in a row",))
        return True
    turn.pauses = 0
    if reason in ("max_tokens", "model_context_window_exceeded"):
        if text:
            turn.add(text, turn.instead)
        turn.continuations += 1
        if turn.continuations > MAX_CONTINUATIONS:
            raise Leave("model_error", stop_reason=reason, text=turn.text, is_error=True)
        _nudge(session, SPLIT_CALL if response.cut_call else GO_ON_CUT)
        return True
    if not text and not turn.asked_again:  # nothing, or thinking alone: ask once more (3.1)
        turn.asked_again = True
        _nudge(session, CONTINUE)
        return True
    if reason == "tool_use":
        raise Leave("model_error", "error_during_execution", stop_reason=reason,
                    errors=("The model announced a tool call and made none",))
    turn.add(text, turn.instead)
    more = [t for t in await each(session, "before_stop", turn.text) if t]
    if more:
        turn.clear()
        _nudge(session, "\n".join(more))
        return True
    return await stop_hooks(session, turn)


async def stop_hooks(session: Session, turn: Turn) -> bool:
    """Whether a Stop hook makes the turn go on (hooks contract, section 14)."""
    event = session.stopping(turn.stop_blocks > 0, turn.text or None)
    merged = await session.fire(event)
    if merged.stopped:
        if merged.stop_reason:
            session.notice(merged.stop_reason)
        raise Leave("hook_stopped", stop_reason=turn.stop_reason, text=turn.text)
    if not merged.blocked and not merged.contexts:
        return False
    cap = env_number("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", STOP_CAP, least=0)
    if cap and turn.stop_blocks >= cap:
        session.notice(f"Stop hooks kept the turn going {turn.stop_blocks} times in a row; they are ignored now "
                       "(CLAUDE_CODE_STOP_HOOK_BLOCK_CAP)")
        return False
    turn.stop_blocks += 1
    turn.clear()
    feedback = [f"{event.event_name} hook feedback: {session.cap(t.text)}" for t in merged.contexts]
    if feedback:  # the person sees it too, as feedback and not as an error
        session.notice("\n".join(feedback), level="info")
    if merged.blocked:
        feedback.insert(0, f"{event.event_name} hook feedback: {session.cap(merged.block_reason)}")
    _nudge(session, "\n".join(feedback))
    return True


def _nudge(session: Session, text: str) -> None:
    add(session, [text_block(text)])
