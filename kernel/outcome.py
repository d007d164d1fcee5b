"""How a run ends: what it counts, how it is ended, the result message (loop contract, section 9)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from kernel import events as e
from kernel.errors import ModelError
from kernel.leave import Leave
from kernel.messages import INTERRUPTED, text_block
from kernel.models import Response, Usage
from kernel.output import AssistantMessage, ResultMessage
from kernel.record import close_calls, mark_interrupt, take
from kernel.request import category
from kernel.transcript import Entry

if TYPE_CHECKING:
    from kernel.session import Session


class Turn:
    """What one run counts.

    ``texts`` are the pieces of the last answer; ``shown`` is the same as a ``MessageDisplay`` hook wants it seen.
    """

    def __init__(self, session: Session) -> None:
        self.began = session.clock.monotonic()
        self.api_began = session.spending.api_seconds
        self.requests = 0
        self.tool_turns = 0
        self.texts: list[str] = []
        self.shown: list[str] = []
        self.stop_reason: str | None = None
        self.pauses = self.continuations = self.malformed = self.stop_blocks = 0
        self.asked_again = False
        self.instead: str | None = None

    def add(self, text: str, shown: str | None) -> None:
        """One more piece of the answer."""
        self.texts.append(text)
        self.shown.append(text if shown is None else shown)

    def clear(self) -> None:
        self.texts, self.shown = [], []

    @property
    def text(self) -> str:
        return "".join(self.texts)


async def ending(session: Session, turn: Turn, work: Awaitable[None]) -> Leave:
    """Wait for the work of a run; how it ended."""
    try:
        await work
        return Leave("completed", stop_reason=turn.stop_reason)
    except Leave as leave:
        return leave
    except ModelError as error:
        return await api_error(session, error)
    except Exception as error:
        return internal_failure(session, turn, error)
    finally:
        session.interrupted = False


async def interrupted(session: Session, turn: Turn, partial: Response | None) -> None:
    """Keep what was shown, answer what was called, mark the interruption (loop contract, 9.4)."""
    if partial and partial.blocks:
        await take(session, partial, aborted=True)
        close_calls(session, "Not run: interrupted by the user.")
    mark_interrupt(session, "[Request interrupted by user]")
    raise Leave("aborted_streaming", "error_during_execution", stop_reason=turn.stop_reason, errors=("Interrupted by the user",))


def internal_failure(session: Session, turn: Turn, error: Exception) -> Leave:
    """A fault of ours or of a plugin that nothing nearer caught: the run ends with a result, the session goes on."""
    import traceback

    session.debug("".join(traceback.format_exception(error)))
    close_calls(session, INTERRUPTED)
    text = f"Internal failure: {type(error).__name__}: {error}"
    session.notice(f"{text} (--debug shows where)", guard=True)
    reason = "model_error" if turn.requests else "turn_setup_failed"
    return Leave(reason, "error_during_execution", stop_reason=turn.stop_reason, errors=(text,))


async def api_error(session: Session, error: ModelError) -> Leave:
    """The request failed for good: StopFailure instead of Stop, and the failure as the last assistant message."""
    kind = category(error)
    status = f" {error.status}" if error.status else ""
    hint = "; ".join(filter(None, (error.hint, _others(session) if kind == "authentication_failed" and not error.status else "")))
    text = f"API Error{status}: {error.message}" + (f" ({hint})" if hint else "")
    await session.fire(session.make(e.StopFailure, error=kind, error_details=error.kind, last_assistant_message=text))
    uuid = session.clock.new_id()
    message = {"id": f"msg_{uuid}", "type": "message", "role": "assistant", "model": "<synthetic>",
               "content": [text_block(text)], "stop_reason": "stop_sequence", "stop_sequence": "", "usage": Usage()}
    session.record(Entry(type="assistant", uuid=uuid, message=message, extra={"isApiErrorMessage": True}))
    session.emit(AssistantMessage(uuid=uuid, session_id=session.id, message=message, parent_tool_use_id=None, error=kind))
    return Leave("api_error", text=text, status=error.status, is_error=True)


def _others(session: Session) -> str:
    """Who else could be asked by one who has no key."""
    others = [name for name in session.harness.providers() if name != session.provider.name]
    return f"other providers are installed: {', '.join(others)} (--model PROVIDER:MODEL)" if others else ""


def make_result(session: Session, turn: Turn, leave: Leave, uuid: str | None, origin: dict[str, Any] | None) -> ResultMessage:
    """The documented result message of an outcome."""
    success = leave.subtype == "success"
    text = leave.text if leave.text is not None else "".join(turn.shown)
    facts = session.result_facts if success else {}
    return ResultMessage(
        uuid=session.clock.new_id(), session_id=session.id, subtype=leave.subtype, is_error=leave.is_error,
        duration_ms=round((session.clock.monotonic() - turn.began) * 1000),
        duration_api_ms=round((session.spending.api_seconds - turn.api_began) * 1000), num_turns=max(turn.requests, 1),
        stop_reason=leave.stop_reason, total_cost_usd=session.spending.usd, usage=session.spending.turn,
        model_usage=session.spending.by_model, permission_denials=session.denials, terminal_reason=leave.terminal_reason,
        result=text if success else UNSET, errors=UNSET if success else list(leave.errors),
        api_error_status=leave.status if leave.terminal_reason == "api_error" else UNSET,
        deferred_tool_use=leave.more.get("deferred_tool_use", UNSET), origin=origin or UNSET, user_message_uuid=uuid or UNSET,
        **facts)
