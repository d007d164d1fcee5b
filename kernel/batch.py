"""One batch of tool calls: the same gates for every call, exactly one result for each (loop contract, sections 6 and 7)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from kernel import events as e
from kernel.errors import ToolError
from kernel.merge import NOTHING, Merged
from kernel.messages import Block, reminder
from kernel.models import Response
from kernel.output import UserMessage
from kernel.policy import PermissionCall, Verdict
from kernel.schema import fault
from kernel.tools import State, Tool, ToolContext, ToolResult, error_result, invalid_arguments, result_of
from kernel.transcript import Entry

if TYPE_CHECKING:
    from kernel.session import Session

MAX_CONCURRENCY = 10
CANCELLED = "The call was interrupted by the user."
ERROR_CHARS = 10_000


class Call(Struct, kw_only=True):
    """One call on its way through the gates."""

    id: str
    name: str
    input: dict[str, Any]
    tool: Tool | None = None
    context: ToolContext | None = None
    result: ToolResult | None = None
    failed_early: bool = False
    ran: bool = False
    finished: bool = False
    reminders: list[Block] = field(default_factory=list)


class Batch(Struct, kw_only=True):
    """What a batch came to. ``stopped``: a hook or an answer ends the turn, for the ``stop_reason``.

    ``deferred``: a hook put the only call off; it has no result and stays open.
    """

    calls: list[Call]
    stopped: bool = False
    stop_reason: str = ""
    interrupted: bool = False
    deferred: Call | None = None
    reminders: list[Block] = field(default_factory=list)

    def content(self) -> list[Block]:
        """The one user message that answers the batch: results in call order, then what was added."""
        results = [c.result.block() for c in self.calls if c.result]
        added = [b for c in self.calls for b in (*(c.result.new_messages if c.result else ()), *c.reminders)]
        return results + added + self.reminders


async def run_batch(session: Session, response: Response) -> Batch:
    """Run all calls of one assistant message. Never raises for what a tool, hook or rule does."""
    import anyio

    batch = Batch(calls=[Call(id=b["id"], name=str(b.get("name")), input=b["input"]) for b in response.calls])
    for call in batch.calls:
        _look_up(session, call, response.bad_inputs.get(call.id))
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
    batch.reminders = [_hook_context("PostToolBatch", session.cap(t.text)) for t in merged.contexts]
    if merged.blocked or merged.stopped:
        batch.stopped = True
        batch.stop_reason = merged.stop_reason or merged.block_reason
        if batch.stop_reason:
            session.notice(batch.stop_reason)
            batch.reminders.append(reminder(f"PostToolBatch hook stopped the turn: {session.cap(batch.stop_reason)}"))


# -- before the gates: steps 1 to 5 of the pipeline -----------------------------------------------------------------
def _look_up(session: Session, call: Call, bad_input: str | None) -> None:
    """Find the tool and check the input. A call that fails here raises no hook at all."""
    if bad_input is not None:
        call.result = invalid_arguments(bad_input)
    elif call.name not in session.tools:
        call.result = _unknown(session, call.name)
    else:
        call.tool = tool = session.tools[call.name]
        call.name = tool.name
        call.context = ToolContext(session, call.id, tool.name, partial(_progress, session, call))
        call.input, call.result = _checked(tool, call.input, call.context)
    call.failed_early = call.result is not None


def _checked(tool: Tool, input: dict[str, Any], context: ToolContext) -> tuple[dict[str, Any], ToolResult | None]:
    """Repair, schema, preparation and the tool's own validation."""
    try:
        input = tool.repair_input(input)
        input, problem = fault(tool, input)
        if problem:
            return input, invalid_arguments(problem)
        input = tool.prepare_input(input, context)
        tool.validate_input(input, context)
    except ToolError as error:
        return input, error_result(error.code, f"<tool_use_error>{error.code}: {error}</tool_use_error>")
    except Exception as error:
        return input, error_result("fatal", f"{tool.name} failed while it checked its input: {type(error).__name__}: {error}",
                                   status="fatal_error")
    return input, None


def _unknown(session: Session, name: str) -> ToolResult:
    from difflib import get_close_matches

    near = get_close_matches(name, list(session.tools), n=3, cutoff=0.5)
    hint = f" Did you mean {', '.join(near)}?" if near else f" The tools are: {', '.join(t.name for t in session.offered)}."
    return error_result("unknown_tool", f"<tool_use_error>unknown_tool: No such tool: {name[:200]!r}.{hint}</tool_use_error>")


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
        given = os.environ.get("CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY", "")
        limiter = anyio.Semaphore(int(given) if given.isdecimal() and int(given) else MAX_CONCURRENCY)

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
        assert call.tool is not None and call.context is not None
        hooks = await _pre(session, batch, call)
        if call.result is None and not batch.deferred:
            await _permit(session, batch, call, hooks)
        if call.result is None and not batch.deferred:
            await _execute(session, batch, call)
    if call.result is not None:
        _finish(session, call, call.result)


async def _pre(session: Session, batch: Batch, call: Call) -> Merged:
    if not session.harness.dispatcher.listens(e.PreToolUse):
        return NOTHING
    merged = await session.fire(session.make(e.PreToolUse, tool_name=call.name, tool_input=call.input, tool_use_id=call.id))
    decision = merged.decision
    if decision == "defer" and (len(batch.calls) > 1 or not session.options.print_mode):
        session.notice(f"PreToolUse:{call.name}: defer works for a single call in print mode only; it is ignored")
        decision = None
    if decision != "defer":
        call.reminders += [_hook_context(f"PreToolUse:{call.name}", session.cap(t.text)) for t in merged.contexts]
    if merged.stopped:
        batch.stopped = True
        batch.stop_reason = batch.stop_reason or merged.stop_reason
    if decision == "deny":
        reason = session.cap(merged.reason) or "no reason was given"
        _deny(session, call, f"PreToolUse:{call.name} hook refused this call: {reason}")
    elif decision == "defer":
        batch.deferred = call
    elif merged.stopped:
        _deny(session, call, f"Not run: a PreToolUse hook ended the turn. {merged.stop_reason}".strip())
    elif merged.updated_input:
        _replace_input(call, merged.updated_input.value)
    return merged


def _replace_input(call: Call, value: dict[str, Any]) -> None:
    """An input that a hook or a person rewrote goes through the checks again."""
    assert call.tool is not None and call.context is not None
    call.input, call.result = _checked(call.tool, value, call.context)
    call.failed_early = call.result is not None


def _deny(session: Session, call: Call, text: str, verdict: Verdict | None = None) -> None:
    call.result = error_result("permission_denied", text, status="blocked")
    session.denials.append({"tool_name": call.name, "tool_use_id": call.id, "tool_input": call.input})
    if verdict is not None:  # not for a denial on the hook path (headless contract, 5.9)
        session.say("permission_denied", tool_name=call.name, tool_use_id=call.id, message=text,
                    decision_reason_type=verdict.reason_type)


async def _permit(session: Session, batch: Batch, call: Call, hooks: Merged) -> None:
    """Rules, modes, and whoever can be asked. Leaves a result where the call is refused."""
    verdict = _decide(session, call, hooks)
    if verdict.behavior == "ask":
        if session.state.permission_mode == "dontAsk":
            verdict = Verdict(behavior="deny", reason_type="mode", message=_refusal(call, "the mode is dontAsk"))
        else:
            async with session.asking:  # one question at a time; an answer may settle the next one
                verdict = _decide(session, call, hooks)
                if verdict.behavior == "ask":
                    try:
                        verdict = await _ask(session, batch, call, verdict)
                    except Exception as error:
                        verdict = _no_verdict(session, call, error)
    if verdict.behavior == "deny" and call.result is None:
        _deny(session, call, verdict.message or _refusal(call, "a rule denies it"), verdict)


def _decide(session: Session, call: Call, hooks: Merged) -> Verdict:
    hook: Any = hooks.decision if hooks.decision in ("allow", "ask") else None
    try:
        return _verdict(session, call, hook, hooks.updated_input is not None)
    except Exception as error:
        return _no_verdict(session, call, error)


def _question(session: Session, call: Call, hook: Any = None, hook_rewrote: bool = False) -> PermissionCall:
    assert call.tool is not None
    return PermissionCall(tool=call.tool, input=call.input, cwd=session.state.cwd, mode=session.state.permission_mode,
                          hook=hook, hook_rewrote=hook_rewrote, agent_id=session.agent_id)


def _verdict(session: Session, call: Call, hook: Any, hook_rewrote: bool) -> Verdict:
    verdict = session.policy.decide(_question(session, call, hook, hook_rewrote))
    if not isinstance(verdict, Verdict) or verdict.behavior not in ("allow", "ask", "deny"):
        raise TypeError(f"the policy answered {verdict!r}, expected a Verdict")
    return verdict


def _no_verdict(session: Session, call: Call, error: Exception) -> Verdict:
    session.notice(f"the permission policy failed on {call.name}: {type(error).__name__}: {error}", guard=True)
    return Verdict(behavior="deny", message=f"Refused: the permission policy failed ({type(error).__name__}: {error}).")


def _refusal(call: Call, why: str) -> str:
    return (f"Permission to use {call.name} was not given ({why}). Do not repeat the call unchanged: choose another way, "
            "or end and say what you would need.")


async def _ask(session: Session, batch: Batch, call: Call, verdict: Verdict) -> Verdict:
    """PermissionRequest hooks first, then the person or program; with neither the call is refused."""
    if session.harness.dispatcher.listens(e.PermissionRequest):
        merged = await session.fire(session.make(
            e.PermissionRequest, tool_name=call.name, tool_input=call.input,
            permission_suggestions=verdict.suggestions or None))
        if merged.stopped:
            batch.stopped, batch.stop_reason = True, batch.stop_reason or merged.stop_reason
        if merged.behavior is not None or merged.stopped:
            answer = {"behavior": None if merged.stopped else merged.behavior, "interrupt": merged.interrupt,
                      "message": "\n".join(t.text for t in merged.messages),
                      "updatedPermissions": merged.updated_permissions,
                      "updatedInput": merged.updated_input.value if merged.updated_input else None}
            applied = _apply(session, batch, call, answer, "hook")
            if applied.behavior != "ask":
                return applied
            verdict = applied  # a hook's new input met an ask rule, which only a person can answer
    if session.asker is None:
        return msgspec.structs.replace(verdict, behavior="deny", message=_refusal(
            call, f"{verdict.message or 'it needs approval'}; nobody can be asked in this run"))
    try:
        answer = await session.asker(_question(session, call), verdict, call.id)
    except Exception as error:
        return Verdict(behavior="deny", message=_refusal(call, f"the question failed: {type(error).__name__}: {error}"))
    applied = _apply(session, batch, call, answer if isinstance(answer, dict) else {}, "promptTool")
    return Verdict(behavior="allow", reason_type="promptTool") if applied.behavior == "ask" else applied


def _apply(session: Session, batch: Batch, call: Call, answer: dict[str, Any], reason: str) -> Verdict:
    if answer.get("behavior") != "allow":
        if answer.get("interrupt"):
            batch.stopped, batch.stop_reason = True, str(answer.get("message") or "refused")
        return Verdict(behavior="deny", reason_type=reason,
                       message=session.cap(str(answer.get("message") or _refusal(call, "it was refused"))))
    for problem in session.policy.update(list(answer.get("updatedPermissions") or ())):
        session.notice(problem)
    if answer.get("updatedInput") is not None:
        _replace_input(call, answer["updatedInput"])
        if call.result is None:  # the new input meets deny and ask rules again; the answer stands for a hook's allow
            return _verdict(session, call, "allow", hook_rewrote=True)
    return Verdict(behavior="allow", reason_type=reason)


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
    except Exception as error:
        session.debug(f"{call.name} crashed: {error!r}")
        result = error_result("fatal", f"{call.name} failed: {type(error).__name__}: {error}"[:ERROR_CHARS], status="fatal_error")
    took = round((session.clock.monotonic() - began) * 1000)
    call.result = msgspec.structs.replace(result, call_id=call.id, tool_name=call.name, duration_ms=took)
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
    call.reminders += [_hook_context(event.hook_name, session.cap(t.text)) for t in merged.contexts]
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


def _progress(session: Session, call: Call, data: dict[str, Any]) -> None:
    from kernel.output import ToolProgress

    session.emit(ToolProgress(uuid=session.clock.new_id(), session_id=session.id, tool_use_id=call.id, tool_name=call.name,
                              parent_tool_use_id=None, elapsed_time_seconds=float(data.pop("elapsed", 0.0)),
                              heartbeat=bool(data.pop("heartbeat", False)), data=data or None))


def _hook_context(hook: str, text: str) -> Block:
    return reminder(f"{hook} hook additional context: {text}")


def _text(content: str | list[Block]) -> str:
    text = content if isinstance(content, str) else "\n".join(str(b.get("text", "")) for b in content)
    if len(text) <= ERROR_CHARS:
        return text
    half = ERROR_CHARS // 2
    return f"{text[:half]}\n... ({len(text) - ERROR_CHARS} characters left out) ...\n{text[-half:]}"
