"""Who may say yes: hooks, rules and modes, and whoever can be asked (loop contract, section 6, steps 6 to 10).

deny > defer > ask > allow. What nobody decides is refused.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import msgspec

from kernel import events as e
from kernel.calls import Batch, Call, copied, replace_input
from kernel.merge import NOTHING, Merged
from kernel.messages import hook_context, reminder
from kernel.middleware import fold
from kernel.policy import PermissionCall, Verdict, checked
from kernel.tools import error_result

if TYPE_CHECKING:
    from kernel.session import Session


async def pre_tool_use(session: Session, batch: Batch, call: Call) -> Merged:
    if not session.harness.dispatcher.listens(e.PreToolUse):
        return NOTHING
    merged = await session.fire(session.make(
        e.PreToolUse, tool_name=call.name, tool_input=copied(call.input), tool_use_id=call.id))
    decision = merged.decision
    if decision == "defer" and (len(batch.calls) > 1 or not session.options.print_mode or session.parent is not None):
        session.notice(f"PreToolUse:{call.name}: defer works for a single call in print mode only; it is ignored")
        decision = None
    if decision != "defer":
        call.reminders += [hook_context(f"PreToolUse:{call.name}", session.cap(t.text)) for t in merged.contexts]
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
        replace_input(session, call, merged.updated_input.value)
    return merged


def _deny(session: Session, call: Call, text: str, verdict: Verdict | None = None) -> None:
    call.result = error_result("permission_denied", text, status="blocked")
    session.denials.append({"tool_name": call.name, "tool_use_id": call.id, "tool_input": call.input})
    if verdict is not None:  # not for a denial on the hook path (headless contract, 5.9)
        session.say("permission_denied", tool_name=call.name, tool_use_id=call.id, message=text,
                    decision_reason_type=verdict.reason_type)


async def permit(session: Session, batch: Batch, call: Call, hooks: Merged) -> None:
    """Rules, modes, and whoever can be asked. Leaves a result where the call is refused."""
    decide = fold(session.middleware, "around_decision", lambda *_: _in_the_end(session, batch, call, hooks))
    try:
        verdict = checked(await decide(_question(session, call, _hook(hooks), hooks.updated_input is not None), call.id))
    except Exception as error:
        verdict = _no_verdict(session, call, error)
    if verdict.behavior != "allow" and call.result is None:
        _deny(session, call, verdict.message or _refusal(call, "a rule denies it"), verdict)
        if verdict.reason_type == "classifier":
            await _denied_by_classifier(session, call, verdict)


async def _in_the_end(session: Session, batch: Batch, call: Call, hooks: Merged) -> Verdict:
    """The policy's verdict, or what asking came to."""
    verdict = _decide(session, call, hooks)
    if verdict.behavior == "ask" and session.state.permission_mode == "auto":
        verdict = await _classified(session, call, hooks, verdict)
    if verdict.behavior == "ask":
        if session.state.permission_mode == "dontAsk":
            verdict = Verdict(behavior="deny", reason_type="mode", message=_refusal(call, "the mode is dontAsk"))
        else:
            async with _place(session):
                verdict = _decide(session, call, hooks)
                if verdict.behavior == "ask":
                    if hooks.decision == "ask" and hooks.reason:  # the person is told why a hook wants to ask
                        verdict = msgspec.structs.replace(verdict, message=session.cap(hooks.reason))
                    try:
                        verdict = await _ask(session, batch, call, verdict)
                    except Exception as error:
                        verdict = _no_verdict(session, call, error)
    return verdict


async def _classified(session: Session, call: Call, hooks: Merged, verdict: Verdict) -> Verdict:
    """The answer of whoever judges in auto mode; the question itself where a person must answer it."""
    classify = getattr(session.policy, "classify", None)
    if classify is None:
        return verdict
    try:
        answer = await classify(_question(session, call, _hook(hooks), hooks.updated_input is not None))
        return verdict if answer is None else checked(answer)
    except Exception as error:
        return msgspec.structs.replace(_no_verdict(session, call, error), reason_type="classifier", undecided=True)


async def _denied_by_classifier(session: Session, call: Call, verdict: Verdict) -> None:
    """Auto mode refused: a hook may let the model try again, the denial itself stands (hooks contract, 18.10)."""
    if not session.harness.dispatcher.listens(e.PermissionDenied):
        return
    merged = await session.fire(session.make(
        e.PermissionDenied, tool_name=call.name, tool_input=copied(call.input), tool_use_id=call.id, reason=verdict.message))
    if merged.retry and not verdict.undecided:
        call.reminders.append(reminder("PermissionDenied hook: you may retry this call."))


def _place(session: Session) -> AbstractAsyncContextManager[Any]:
    """One question at a time, since an answer may settle the next one; whoever says so is asked several side by side."""
    return nullcontext() if getattr(session.root.asker, "side_by_side", False) else session.asking


def _decide(session: Session, call: Call, hooks: Merged) -> Verdict:
    try:
        return _verdict(session, call, _hook(hooks), hooks.updated_input is not None)
    except Exception as error:
        return _no_verdict(session, call, error)


def _hook(hooks: Merged) -> Any:
    return hooks.decision if hooks.decision in ("allow", "ask") else None


def _question(session: Session, call: Call, hook: Any = None, hook_rewrote: bool = False) -> PermissionCall:
    assert call.tool is not None
    return PermissionCall(tool=call.tool, input=call.input, cwd=session.state.cwd, mode=session.state.permission_mode,
                          hook=hook, hook_rewrote=hook_rewrote, agent_id=session.agent_id)


def _verdict(session: Session, call: Call, hook: Any, hook_rewrote: bool) -> Verdict:
    return checked(session.policy.decide(_question(session, call, hook, hook_rewrote)))


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
            e.PermissionRequest, tool_name=call.name, tool_input=copied(call.input),
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
    if session.root.asker is None:
        return msgspec.structs.replace(verdict, behavior="deny", message=_refusal(
            call, f"{verdict.message or 'it needs approval'}; nobody can be asked in this run"))
    try:
        ask = fold(session.middleware, "around_approval", session.root.asker)
        answer = await ask(_question(session, call), verdict, call.id)
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
        replace_input(session, call, answer["updatedInput"])
        if call.result is None:  # the new input meets deny and ask rules again; the answer stands for a hook's allow
            return _verdict(session, call, "allow", hook_rewrote=True)
    return Verdict(behavior="allow", reason_type=reason)
