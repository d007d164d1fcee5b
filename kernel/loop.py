"""The message loop (loop contract, sections 1, 3 and 9): ask the model, run what it calls, until there is an end.

One prompt goes in, exactly one ``ResultMessage`` comes out. The decision to go on is taken on the content of an
answer; leaving the loop is an exception that carries the outcome's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from kernel.admit import admit
from kernel.batch import run_batch
from kernel.errors import ModelError
from kernel.extension import each
from kernel.finish import INCOMPLETE, MAX_CONTINUATIONS, SPLIT_CALL, goes_on, stop_hooks
from kernel.leave import Leave
from kernel.messages import Block, reminder, text_block, text_of
from kernel.models import Response, Usage
from kernel.outcome import Turn, ending, interrupted, make_result
from kernel.output import ResultMessage
from kernel.record import add, mark_interrupt, take
from kernel.request import is_too_long, respond

if TYPE_CHECKING:
    from kernel.session import Session

MAX_MALFORMED = 3


async def run(session: Session, prompt: str | list[Block] | None, *, uuid: str | None = None,
              origin: dict[str, Any] | None = None) -> ResultMessage:
    """Run one prompt to its end; see ``Session.submit``."""
    turn = Turn(session)
    session.spending.turn = Usage()
    session.denials = []
    session.result_facts = {}
    leave = await ending(session, turn, _prompt(session, turn, prompt, uuid))
    for other in await each(session, "at_end", leave):
        leave = other or leave
    message = make_result(session, turn, leave, uuid, origin)
    session.emit(message)
    return message


async def _prompt(session: Session, turn: Turn, prompt: str | list[Block] | None, uuid: str | None) -> None:
    await session.start()
    session.prompt_id = session.clock.new_id()
    session.asked = (prompt, uuid or session.prompt_id)
    session.say_init()
    if session.deferred:
        await _take_up(session, turn, wait=prompt is None)
    if prompt is not None:
        await admit(session, prompt, session.asked[1])
    await turns(session, turn)


async def turns(session: Session, turn: Turn) -> None:
    """Ask and run until an answer calls nothing.

    :raises Leave: the run ends otherwise.
    """
    limit = session.options.max_turns
    while True:
        if limit is not None and turn.tool_turns >= limit:
            raise Leave("max_turns", "error_max_turns", stop_reason=turn.stop_reason,
                        errors=(f"Reached maximum number of turns ({limit})",))
        _check_budget(session, turn)
        response = await _ask_model(session, turn)
        if response.calls and response.stop_reason != "refusal":
            await _run_calls(session, turn, response)
            if any(await each(session, "after_batch")) and not await stop_hooks(session, turn):
                return
        elif not await goes_on(session, turn, response):
            return


def _check_budget(session: Session, turn: Turn) -> None:
    budget = session.options.max_budget_usd
    if budget is not None and session.root.spending.usd >= budget:
        raise Leave("budget_exhausted", "error_max_budget_usd", stop_reason=turn.stop_reason,
                    errors=(f"Reached maximum budget (${budget:g})",))


async def _take_up(session: Session, turn: Turn, *, wait: bool) -> None:
    """The call that a hook put off meets the gates again; its tool may be gone (hooks contract, 13.3).

    :param wait: put off once more, it goes on waiting; otherwise it is closed and the prompt behind it goes on.
    """
    call = next(b for b in session.history.messages[-1][1] if b.get("type") == "tool_use")
    if call["name"] not in session.toolbox.by_name:
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


# -- the model ------------------------------------------------------------------------------------------------------------
async def _ask_model(session: Session, turn: Turn) -> Response:
    """One answer, in the history, in the transcript and on the stream."""
    if session.interrupted:  # it came before the request, which is not made then
        await interrupted(session, turn, None)
    turn.requests += 1
    session.partial = None  # an interrupt before this answer begins must not keep the last one once more
    with anyio.CancelScope() as scope:
        session.scope = scope
        response = await _fitting(session)
    session.scope = None
    if scope.cancelled_caught:
        partial = session.partial.response(broken=True, keep_open_text=True) if session.partial else None
        await interrupted(session, turn, partial)
    turn.stop_reason = response.stop_reason
    session.spending.answer(session.model_info, response.usage)
    turn.instead = await take(session, response)
    session.measured = (response.usage, len(session.history))
    return response


async def _fitting(session: Session) -> Response:
    """The answer to a request that the compactor made fit, before it is sent and once more after a refusal for its length."""
    compactor = session.harness.compactor if session.history.messages else None
    if compactor is not None:
        await compactor.before_request(session)
    await each(session, "before_request")
    if not session.history.open_calls and (told := session.take_pending()):
        add(session, told)
    changes, session.once = session.once, {}
    try:
        return await respond(session, session.request(**changes))
    except ModelError as error:
        if compactor is None or not is_too_long(error) or not await compactor.too_long(session, error):
            raise
    return await respond(session, session.request(**changes))


async def _run_calls(session: Session, turn: Turn, response: Response) -> None:
    """Run the batch and answer it in one user message."""
    turn.clear()
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
    more += session.take_pending()  # for example that a background command ended meanwhile
    session.history.append("user", [*batch.content(), *more])
    added = [b for b in [*batch.content(), *more] if b.get("type") != "tool_result"]
    if added:
        session.record(session.context_entry(added))
    turn.malformed = turn.malformed + 1 if all(c.failed_early for c in batch.calls) else 0
    if batch.interrupted:
        mark_interrupt(session, "[Request interrupted by user for tool use]")
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
