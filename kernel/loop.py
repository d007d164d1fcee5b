"""The message loop (loop contract, sections 1, 3 and 9): ask the model, run what it calls, until there is an end.

One prompt goes in, exactly one ``ResultMessage`` comes out. The decision to go on is taken on the content of an
answer; leaving the loop is an exception that carries the outcome's name.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import anyio
from msgspec import UNSET

from kernel import events as e
from kernel.batch import run_batch
from kernel.errors import ModelError
from kernel.messages import INTERRUPTED, Block, blocks_of, reminder, text_block, text_of
from kernel.models import Response, Usage
from kernel.output import AssistantMessage, ResultMessage, UserMessage
from kernel.request import category, respond
from kernel.transcript import Entry

if TYPE_CHECKING:
    from kernel.session import Session

MAX_PAUSES = 5
MAX_CONTINUATIONS = 3
MAX_MALFORMED = 3
STOP_CAP = 8
CONTINUE = "Go on."
GO_ON_CUT = "Your answer was cut off. Go on exactly where it stopped, without repeating anything."
SPLIT_CALL = "Your last tool call was cut off because it was too long, so it was not run. Split it into smaller calls."
INCOMPLETE = "The connection was lost while the model was answering; the response may be incomplete."


class Leave(Exception):
    """The loop ends. ``subtype`` and ``terminal_reason`` are the documented names; ``errors`` go to the result."""

    def __init__(self, terminal_reason: str, subtype: str = "success", *, stop_reason: str | None = None,
                 text: str | None = None, errors: tuple[str, ...] = (), status: int | None = None,
                 is_error: bool = False, **more: Any) -> None:
        super().__init__(terminal_reason)
        self.terminal_reason = terminal_reason
        self.subtype = subtype
        self.stop_reason = stop_reason
        self.text = text
        self.errors = errors
        self.status = status
        self.is_error = is_error or subtype != "success"
        self.more = more


class Turn:
    """What one run counts. ``texts`` are the pieces of the last answer, joined for the result."""

    def __init__(self, session: Session) -> None:
        self.began = session.clock.monotonic()
        self.api_began = session.api_seconds
        self.requests = 0
        self.tool_turns = 0
        self.texts: list[str] = []
        self.stop_reason: str | None = None
        self.pauses = self.continuations = self.malformed = self.stop_blocks = 0
        self.asked_again = False


async def run(session: Session, prompt: str | list[Block] | None, *, uuid: str | None = None,
              origin: dict[str, Any] | None = None) -> ResultMessage:
    """Run one prompt to its end; see ``Session.submit``."""
    turn = Turn(session)
    session.turn_usage = Usage()
    session.denials = []
    try:
        await session.start()
        session.prompt_id = session.clock.new_id()
        session.say_init()
        if session.deferred:
            await _take_up(session, turn, wait=prompt is None)
        if prompt is not None:
            await _admit(session, prompt, uuid)
        await _turns(session, turn)
        leave = Leave("completed", stop_reason=turn.stop_reason)
    except Leave as outcome:
        leave = outcome
    except ModelError as error:
        leave = await _api_error(session, error)
    except Exception as error:
        leave = _internal(session, turn, error)
    session.interrupted = False
    message = make_result(session, turn, leave, uuid, origin)
    session.emit(message)
    return message


async def _turns(session: Session, turn: Turn) -> None:
    limit = session.options.max_turns
    while True:
        if limit is not None and turn.tool_turns >= limit:
            raise Leave("max_turns", "error_max_turns", stop_reason=turn.stop_reason,
                        errors=(f"Reached maximum number of turns ({limit})",))
        _check_budget(session, turn)
        response = await _ask_model(session, turn)
        if response.calls and response.stop_reason != "refusal":
            await _run_calls(session, turn, response)
        elif not await _goes_on(session, turn, response):
            return


def _check_budget(session: Session, turn: Turn) -> None:
    budget = session.options.max_budget_usd
    if budget is not None and session.cost_usd >= budget:
        raise Leave("budget_exhausted", "error_max_budget_usd", stop_reason=turn.stop_reason,
                    errors=(f"Reached maximum budget (${budget:g})",))


async def _take_up(session: Session, turn: Turn, *, wait: bool) -> None:
    """The call that a hook put off meets the gates again; its tool may be gone (hooks contract, 13.3).

    :param wait: put off once more, it goes on waiting; otherwise it is closed and the prompt behind it goes on.
    """
    call = next(b for b in session.history.messages[-1][1] if b.get("type") == "tool_use")
    if call["name"] not in session.tools:
        session.deferred = False  # said once; the next prompt closes the call
        raise Leave("tool_deferred_unavailable", stop_reason="tool_deferred_unavailable", is_error=True,
                    text=f"The tool {call['name']} of the call that was put off is not available.",
                    deferred_tool_use={"id": call["id"], "name": call["name"], "input": call["input"]})
    session.deferred = False
    session.transcript.set("deferred-tool", "")
    answer = Response(id="", model=session.model_info.id, blocks=[call], stop_reason="tool_use", usage=Usage())
    try:
        await _run_calls(session, turn, answer)
    except Leave as leave:
        if wait or leave.terminal_reason != "tool_deferred":
            raise
        session.deferred = False
        session.transcript.set("deferred-tool", "")


# -- the prompt -----------------------------------------------------------------------------------------------------------
async def _admit(session: Session, prompt: str | list[Block], uuid: str | None) -> None:
    """UserPromptSubmit, then the prompt enters the history, with the context that was added."""
    blocks = [text_block(prompt)] if isinstance(prompt, str) else list(prompt)
    if not blocks_of(blocks):
        raise Leave("completed", text="The prompt was blank, so nothing was asked.")
    _close_calls(session, INTERRUPTED)  # a call that was put off and never taken up again
    merged = await session.fire(session.make(e.UserPromptSubmit, prompt=text_of(blocks), session_title=session.title))
    session.set_title(merged.last.get("session_title"))
    if merged.blocked or merged.stopped:
        reason = merged.stop_reason if merged.stopped else merged.block_reason
        text = session.cap(reason) or "The prompt was blocked by a hook."
        session.say("informational", content=f"UserPromptSubmit hook blocked the prompt: {text}", level="warning",
                    prevent_continuation=True)
        raise Leave("hook_stopped", text=text)
    before, session.pending = session.pending, []
    after = [reminder(f"UserPromptSubmit hook additional context: {session.cap(t.text)}") for t in merged.contexts]
    session.history.append("user", [*before, *blocks, *after])
    entry = Entry(type="user", uuid=uuid or session.clock.new_id(), message={"role": "user", "content": prompt},
                  extra={"promptId": session.prompt_id})
    session.record(*([session.context_entry(before)] if before else []), entry,
                   *([session.context_entry(after)] if after else []))
    session.transcript.set("last-prompt", text_of(blocks)[:200])


# -- the model ------------------------------------------------------------------------------------------------------------
async def _ask_model(session: Session, turn: Turn) -> Response:
    """One answer, in the history, in the transcript and on the stream."""
    if session.interrupted:  # it came before the request, which is not made then
        _interrupted(session, turn, None)
    turn.requests += 1
    with anyio.CancelScope() as scope:
        session.scope = scope
        response = await respond(session, session.request())
    session.scope = None
    if scope.cancelled_caught:
        partial = session.partial.response(broken=True, keep_open_text=True) if session.partial else None
        _interrupted(session, turn, partial)
    turn.stop_reason = response.stop_reason
    session.spend(response)
    _take(session, response)
    return response


def _take(session: Session, response: Response, aborted: bool = False) -> None:
    """Append the answer; one transcript entry and one message per block, with one message id."""
    blocks = session.history.append("assistant", _with_new_ids(session, response))
    response.blocks = blocks
    entries: list[Entry] = []
    messages: list[AssistantMessage] = []
    for number, block in enumerate(blocks):
        last = number == len(blocks) - 1
        message = {"id": response.id, "type": "message", "role": "assistant", "model": response.model, "content": [block],
                   "stop_reason": response.stop_reason if last and not aborted else None,
                   "stop_sequence": response.stop_sequence, "usage": response.usage}
        uuid = session.clock.new_id()
        entries.append(Entry(type="assistant", uuid=uuid, message=message))
        messages.append(AssistantMessage(uuid=uuid, session_id=session.id, message=message, parent_tool_use_id=None,
                                         aborted=aborted))
    if entries:
        session.record(*entries)  # durable before it is shown, and before its tools run
    for shown in messages:
        session.emit(shown)


def _with_new_ids(session: Session, response: Response) -> list[Block]:
    """The blocks; a call whose id was used before gets a new one (loop contract, 9.6)."""
    blocks: list[Block] = []
    used: set[str] = set()
    for block in response.blocks:
        call = block.get("id")
        if block.get("type") == "tool_use" and (not isinstance(call, str) or call in used or session.history.knows(call)):
            block = {**block, "id": f"toolu_{session.clock.new_id().replace('-', '')[:24]}"}
            if str(call) in response.bad_inputs:
                response.bad_inputs[block["id"]] = response.bad_inputs[str(call)]
        used.add(str(block.get("id")))
        blocks.append(block)
    return blocks


async def _run_calls(session: Session, turn: Turn, response: Response) -> None:
    """Run the batch and answer it in one user message."""
    turn.texts = []
    turn.tool_turns += 1
    turn.stop_blocks = turn.pauses = 0
    cut = response.cut_call and not response.incomplete
    turn.continuations = turn.continuations + 1 if cut else 0
    budget = session.options.max_budget_usd
    batch = await run_batch(session, response)
    if batch.deferred:
        call = batch.deferred
        session.deferred = True
        session.transcript.set("deferred-tool", call.id)
        raise Leave("tool_deferred", stop_reason="tool_deferred",
                    deferred_tool_use={"id": call.id, "name": call.name, "input": call.input})
    more = [text_block(SPLIT_CALL)] if cut else []
    if response.incomplete:
        session.notice(INCOMPLETE)
        more.append(reminder(INCOMPLETE))
    told, session.pending = session.pending, []  # for example that a background command ended meanwhile
    more += told
    session.history.append("user", [*batch.content(), *more])
    added = [b for b in [*batch.content(), *more] if b.get("type") != "tool_result"]
    if added:
        session.record(session.context_entry(added))
    turn.malformed = turn.malformed + 1 if all(c.failed_early for c in batch.calls) else 0
    if batch.interrupted:
        _mark_interrupt(session, "[Request interrupted by user for tool use]")
        raise Leave("aborted_tools", "error_during_execution", stop_reason=turn.stop_reason, errors=("Interrupted by the user",))
    if batch.stopped:
        raise Leave("hook_stopped", stop_reason=turn.stop_reason, text=batch.stop_reason)
    if turn.malformed > MAX_MALFORMED:
        raise Leave("malformed_tool_use_exhausted", "error_during_execution", stop_reason=turn.stop_reason,
                    errors=(f"{turn.malformed} answers in a row held only malformed tool calls",))
    if turn.continuations > MAX_CONTINUATIONS:
        raise Leave("model_error", stop_reason=turn.stop_reason, text=text_of(response.blocks), is_error=True)
    if budget is not None:
        _check_budget(session, turn)


# -- an answer without a call ---------------------------------------------------------------------------------------------
async def _goes_on(session: Session, turn: Turn, response: Response) -> bool:
    """Act on the stop reason (section 3); false where the turn is over."""
    text = text_of(response.blocks)
    reason = response.stop_reason
    if reason == "refusal":
        _close_calls(session, "Not run: the answer was refused.")
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
            turn.texts.append(text)
        turn.continuations += 1
        if turn.continuations > MAX_CONTINUATIONS:
            raise Leave("model_error", stop_reason=reason, text="".join(turn.texts), is_error=True)
        _nudge(session, SPLIT_CALL if response.cut_call else GO_ON_CUT)
        return True
    if not text and not turn.asked_again:  # nothing, or thinking alone: ask once more (3.1)
        turn.asked_again = True
        _nudge(session, CONTINUE)
        return True
    if reason == "tool_use":
        raise Leave("model_error", "error_during_execution", stop_reason=reason,
                    errors=("The model announced a tool call and made none",))
    turn.texts.append(text)
    return await _stop_hooks(session, turn)


def _nudge(session: Session, text: str) -> None:
    blocks = [text_block(text)]
    session.history.append("user", blocks)
    session.record(session.context_entry(blocks))


async def _stop_hooks(session: Session, turn: Turn) -> bool:
    """Whether a Stop hook makes the turn go on (hooks contract, section 14)."""
    merged = await session.fire(session.make(
        e.Stop, stop_hook_active=turn.stop_blocks > 0, last_assistant_message="".join(turn.texts) or None))
    if merged.stopped:
        if merged.stop_reason:
            session.notice(merged.stop_reason)
        raise Leave("hook_stopped", stop_reason=turn.stop_reason, text="".join(turn.texts))
    if not merged.blocked and not merged.contexts:
        return False
    given = os.environ.get("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "")
    cap = int(given) if given.isdecimal() else STOP_CAP
    if cap and turn.stop_blocks >= cap:
        session.notice(f"Stop hooks kept the turn going {turn.stop_blocks} times in a row; they are ignored now "
                       "(CLAUDE_CODE_STOP_HOOK_BLOCK_CAP)")
        return False
    turn.stop_blocks += 1
    turn.texts = []
    feedback = [f"Stop hook feedback: {session.cap(merged.block_reason)}"] if merged.blocked else []
    feedback += [f"Stop hook feedback: {session.cap(t.text)}" for t in merged.contexts]
    _nudge(session, "\n".join(feedback))
    return True


# -- ends -----------------------------------------------------------------------------------------------------------------
def _interrupted(session: Session, turn: Turn, partial: Response | None) -> None:
    """Keep what was shown, answer what was called, mark the interruption (loop contract, 9.4)."""
    if partial and partial.blocks:
        _take(session, partial, aborted=True)
        _close_calls(session, "Not run: interrupted by the user.")
    _mark_interrupt(session, "[Request interrupted by user]")
    raise Leave("aborted_streaming", "error_during_execution", stop_reason=turn.stop_reason, errors=("Interrupted by the user",))


def _close_calls(session: Session, text: str) -> None:
    """Answer the calls that are still open, so that the history stays legal."""
    results: list[Block] = [{"type": "tool_result", "tool_use_id": call, "content": text, "is_error": True}
                            for call in session.history.open_calls]
    if results:
        session.history.append("user", results)
        session.record(Entry(type="user", uuid=session.clock.new_id(), message={"role": "user", "content": results}))


def _internal(session: Session, turn: Turn, error: Exception) -> Leave:
    """A fault of ours or of a plugin that nothing nearer caught: the run ends with a result, the session goes on."""
    import traceback

    session.debug("".join(traceback.format_exception(error)))
    _close_calls(session, INTERRUPTED)
    text = f"Internal failure: {type(error).__name__}: {error}"
    session.notice(f"{text} (--debug shows where)", guard=True)
    reason = "model_error" if turn.requests else "turn_setup_failed"
    return Leave(reason, "error_during_execution", stop_reason=turn.stop_reason, errors=(text,))


def _mark_interrupt(session: Session, text: str) -> None:
    blocks = [text_block(text)]
    session.history.append("user", blocks)
    uuid = session.clock.new_id()
    message = {"role": "user", "content": blocks}
    session.record(Entry(type="user", uuid=uuid, message=message))
    session.emit(UserMessage(uuid=uuid, session_id=session.id, message=message, parent_tool_use_id=None,
                             timestamp=session.clock.timestamp()))


async def _api_error(session: Session, error: ModelError) -> Leave:
    """The request failed for good: StopFailure instead of Stop, and the failure as the last assistant message."""
    kind = category(error)
    status = f" {error.status}" if error.status else ""
    text = f"API Error{status}: {error.message}" + (f" ({error.hint})" if error.hint else "")
    await session.fire(session.make(e.StopFailure, error=kind, error_details=error.kind, last_assistant_message=text))
    uuid = session.clock.new_id()
    message = {"id": f"msg_{uuid}", "type": "message", "role": "assistant", "model": "<synthetic>",
               "content": [text_block(text)], "stop_reason": "stop_sequence", "stop_sequence": "", "usage": Usage()}
    session.record(Entry(type="assistant", uuid=uuid, message=message, extra={"isApiErrorMessage": True}))
    session.emit(AssistantMessage(uuid=uuid, session_id=session.id, message=message, parent_tool_use_id=None, error=kind))
    return Leave("api_error", text=text, status=error.status, is_error=True)


def make_result(session: Session, turn: Turn, leave: Leave, uuid: str | None, origin: dict[str, Any] | None) -> ResultMessage:
    """The documented result message of an outcome."""
    success = leave.subtype == "success"
    text = leave.text if leave.text is not None else "".join(turn.texts)
    return ResultMessage(
        uuid=session.clock.new_id(), session_id=session.id, subtype=leave.subtype, is_error=leave.is_error,
        duration_ms=round((session.clock.monotonic() - turn.began) * 1000),
        duration_api_ms=round((session.api_seconds - turn.api_began) * 1000), num_turns=max(turn.requests, 1),
        stop_reason=leave.stop_reason, total_cost_usd=session.cost_usd, usage=session.turn_usage,
        model_usage=session.model_usage, permission_denials=session.denials, terminal_reason=leave.terminal_reason,
        result=text if success else UNSET, errors=UNSET if success else list(leave.errors),
        api_error_status=leave.status if leave.terminal_reason == "api_error" else UNSET,
        deferred_tool_use=leave.more.get("deferred_tool_use", UNSET), origin=origin or UNSET, user_message_uuid=uuid or UNSET)
