"""One batch of tool calls: the same gates for every call, exactly one result for each (loop contract, sections 6 and 7)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from kernel import events as e
from kernel.calls import Batch, Call, guarded, look_up, prepare
from kernel.errors import ToolError
from kernel.interrupt import by_signal
from kernel.merge import NOTHING
from kernel.messages import Block, hook_context, reminder
from kernel.models import Response
from kernel.output import UserMessage
from kernel.permit import permit, pre_tool_use
from kernel.schema import fault
from kernel.tools import State, ToolResult, error_result, result_of
from kernel.transcript import Entry
from kernel.variables import env_number

if TYPE_CHECKING:
    from kernel.session import Session

MAX_CONCURRENCY = 10
CANCELLED = "The call was interrupted by the user."
ERROR_CHARS = 10_000


async def run_batch(session: Session, response: Response) -> Batch:
    """Run all calls of one assistant message. Never raises for what a tool, hook or rule does."""
    import anyio

    batch = Batch(calls=[Call(id=b["id"], name=str(b.get("name")), input=b["input"]) for b in response.calls])
    for call in batch.calls:
        look_up(session, call, response.bad_inputs.get(call.id))
    with anyio.CancelScope() as scope:
        session.scope = scope
        if session.interrupted:
            scope.cancel()
        for group in _groups(batch.calls):
            await _run_group(session, batch, group)
            if batch.stopped or batch.deferred:
                break
    session.scope = None
    batch.interrupted = session.interrupted
    if batch.deferred:
        return batch
    for call in batch.calls:
        if not call.finished:  # its turn never came, or it was cancelled; what it came to before counts
            text = CANCELLED if batch.interrupted else f"Not run: the turn was ended. {batch.stop_reason}".strip()
            _finish(session, call, call.result or error_result("cancelled", text, status="cancelled"))
    if not batch.interrupted:
        await _after_batch(session, batch)
    return batch


async def _after_batch(session: Session, batch: Batch) -> None:
    if not session.harness.dispatcher.listens(e.PostToolBatch):
        return
    merged = await session.fire(session.make(e.PostToolBatch, tool_calls=[
        {"tool_name": c.name, "tool_input": c.input, "tool_use_id": c.id,
         "tool_response": c.result.block()["content"] if c.result else None} for c in batch.calls]))
    batch.reminders = [hook_context("PostToolBatch", session.cap(t.text)) for t in merged.contexts]
    if merged.blocked or merged.stopped:
        batch.stopped = True
        batch.stop_reason = merged.stop_reason or merged.block_reason
        if batch.stop_reason:
            session.notice(batch.stop_reason)
            batch.reminders.append(reminder(f"PostToolBatch hook stopped the turn: {session.cap(batch.stop_reason)}"))


def _groups(calls: list[Call]) -> Iterator[list[Call]]:
    """Neighbouring calls that may run side by side; every other call alone (loop contract, 7 rule 3)."""
    group: list[Call] = []
    for call in calls:
        if _is_safe(call):
            group.append(call)
            continue
        if group:
            yield group
        group = []
        yield [call]
    if group:
        yield group


def _is_safe(call: Call) -> bool:
    if call.tool is None or call.result is not None:
        return True  # nothing will run
    try:
        return bool(call.tool.is_concurrency_safe(call.input))
    except Exception:
        return False


async def _run_group(session: Session, batch: Batch, group: list[Call]) -> None:
    import anyio

    if len(group) == 1:
        await _run_call(session, batch, group[0])
    else:
        limiter = anyio.Semaphore(env_number("CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY", MAX_CONCURRENCY))

        async def limited(call: Call) -> None:
            async with limiter:
                await _run_call(session, batch, call)

        async with anyio.create_task_group() as tasks:
            for call in group:
                tasks.start_soon(limited, call)
    for call in group:  # modifiers of a group are applied behind it, in call order
        if call.result and call.result.context_modifier:
            try:
                state = call.result.context_modifier(session.state)
                if not isinstance(state, State):
                    raise TypeError(f"it returned {type(state).__name__}, expected State")
                session.state = state
            except Exception as error:
                session.notice(f"{call.name}: its context modifier failed: {type(error).__name__}: {error}")


# -- the gates: steps 6 to 13 --------------------------------------------------------------------------------------------
async def _run_call(session: Session, batch: Batch, call: Call) -> None:
    if call.result is None:
        guarded(call, partial(prepare, session, call))
        gated = call.tool is not None and not call.tool.internal
        hooks = await pre_tool_use(session, batch, call) if call.result is None and gated else NOTHING
        if call.result is None and not batch.deferred and gated:
            await permit(session, batch, call, hooks)
        if call.result is None and not batch.deferred:
            await _execute(session, batch, call)
    if call.result is not None:
        _finish(session, call, call.result)


async def _execute(session: Session, batch: Batch, call: Call) -> None:
    assert call.tool is not None and call.context is not None
    call.context.state = session.state
    call.ran = True
    began = session.clock.monotonic()
    try:
        result = await session.run_tool(call.tool, call.input, call.context)
        if not isinstance(result, ToolResult):
            raise TypeError(f"call() returned {type(result).__name__}, expected ToolResult")
    except ToolError as error:
        result = result_of(error)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if isinstance(error, KeyboardInterrupt) and by_signal(error):
            raise
        session.debug(f"{call.name} crashed: {error!r}")
        result = error_result("fatal", f"{call.name} failed: {type(error).__name__}: {error}"[:ERROR_CHARS], status="fatal_error")
    took = round((session.clock.monotonic() - began) * 1000)
    call.result = msgspec.structs.replace(result, call_id=call.id, tool_name=call.name, duration_ms=took)
    if not call.tool.internal:
        await _post(session, batch, call, call.result, took)


async def _post(session: Session, batch: Batch, call: Call, result: ToolResult, took: int) -> None:
    kind: type[e.Event] = e.PostToolUseFailure if result.failed else e.PostToolUse
    if not session.harness.dispatcher.listens(kind):
        return
    common = {"tool_name": call.name, "tool_input": call.input, "tool_use_id": call.id, "duration_ms": took}
    if result.failed:
        event = session.make(kind, error=_text(result.content), is_interrupt=result.status == "cancelled" or None, **common)
    else:
        event = session.make(kind, tool_response=result.content if result.structured is None else result.structured, **common)
    merged = await session.fire(event)
    call.reminders += [hook_context(event.hook_name, session.cap(t.text)) for t in merged.contexts]
    if merged.blocked:
        call.reminders.append(reminder(f"{event.hook_name} hook feedback: {session.cap(merged.block_reason)}"))
    if merged.stopped:
        batch.stopped = True
        batch.stop_reason = batch.stop_reason or merged.stop_reason
    if merged.updated_output and call.tool:
        value = merged.updated_output.value
        try:
            if call.tool.output_schema and (problem := fault(call.tool, value, output=True)[1]):
                raise ValueError(problem)
            call.result = msgspec.structs.replace(result, structured=value, content=call.tool.from_structured(value))
        except Exception as error:
            session.notice(f"{event.hook_name}: updatedToolOutput of {merged.updated_output.source} does not fit: "
                           f"{type(error).__name__}: {error}")


# -- behind the gates: steps 14 to 16 ---------------------------------------------------------------------------------------
def _finish(session: Session, call: Call, result: ToolResult) -> None:
    """Size, pairing, transcript, stream. When it returns the result is durable."""
    limit = call.tool.max_result_chars if call.tool else ERROR_CHARS
    content = result.content
    if isinstance(content, str) and len(content) > limit and not result.spill_path:
        path, where = session.kept(call.id, content)
        content = f"{content[:limit // 2]}\n... (output cut: {len(content)} characters in all; the whole output {where})"
        result = msgspec.structs.replace(result, content=content, truncated=True, spill_path=path)
    call.finished = True
    call.result = result = msgspec.structs.replace(result, call_id=call.id, tool_name=call.name)
    message = {"role": "user", "content": [result.block()]}
    structured = result.structured if result.structured is not None else result.content
    uuid = session.clock.new_id()
    session.record(Entry(type="user", uuid=uuid, message=message, extra={"toolUseResult": structured}))
    session.emit(UserMessage(uuid=uuid, session_id=session.id, message=message, parent_tool_use_id=None,
                             tool_use_result=structured, timestamp=session.clock.timestamp()))


def _text(content: str | list[Block]) -> str:
    text = content if isinstance(content, str) else "\n".join(str(b.get("text", "")) for b in content)
    if len(text) <= ERROR_CHARS:
        return text
    half = ERROR_CHARS // 2
    return f"{text[:half]}\n... ({len(text) - ERROR_CHARS} characters left out) ...\n{text[-half:]}"
