"""Writes down what a transcript does not hold: requests, hooks, decisions, questions, and how long each took.

Texts are not written: sizes and hashes of what a request consists of, names, times, and the reason of a refusal, which the model
is shown. A recorder that fails is off; it never counts against what it stands around.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any

from kernel import (
    Asker,
    ConversationReset,
    Decider,
    Event,
    HookRunner,
    Middleware,
    ModelCaller,
    ModelRequest,
    Outcome,
    Output,
    PermissionCall,
    PermissionRequest,
    PreToolUse,
    ResultMessage,
    Session,
    SessionEnd,
    StreamEvent,
    SystemMessage,
    Tool,
    ToolContext,
    ToolResult,
    ToolRunner,
    Usage,
    Verdict,
)
from kernel_inspector.log import VERSION, Log, record_of
from kernel_inspector.measure import Meter, add_sizes

STATE = "inspector"
SWITCH = "kernel.inspector.record"
REASON = 300
"""Characters of a reason that are kept."""
GATES = (PreToolUse, PermissionRequest)
KEPT = frozenset({"decision", "permissionDecision", "behavior", "continue", "retry", "interrupt", "reloadSkills", "action"})
"""Fields of an answer whose value is kept; of all others the size is."""
REASONS = frozenset({"reason", "permissionDecisionReason", "stopReason", "message"})
ENDS = ("message_start", "message_delta")
GIVEN_AWAY = (r"""((?:key|token|secret|passw(?:or)?d|authorization|bearer|credential)s?["']?"""  # a word for it,
              r"""(?:\s*[=:]\s*|\s+)(?:bearer\s+)?["']?)"""  # how it is given,
              r"""[^\s"']{4,}""")  # and what it is
DECIDING: ContextVar[str] = ContextVar("deciding", default="")
"""The call that is being decided upon: a ``PermissionRequest`` does not name it."""
OFF = Middleware()


def _quietly(method: Callable[..., None]) -> Callable[..., None]:
    """What goes wrong with writing ends the recording and nothing else."""
    @wraps(method)
    def guarded(self: Recorder, *args: Any) -> None:
        if self.off:
            return
        try:
            method(self, *args)
        except Exception as error:
            self.off = True
            self.session.debug(f"the inspector records no more: {type(error).__name__}: {error}")
    return guarded


class Inspector(Middleware):
    """Gives every session that is kept its recorder."""

    name = "inspector"

    def for_session(self, session: Session) -> Middleware:
        root = session.root
        if not root.transcript.kept or root.settings.own(SWITCH) is False:
            return OFF
        recorder = session.plugin_state.get(STATE)
        if recorder is None:
            recorder = session.plugin_state[STATE] = Recorder(session, root.plugin_state.setdefault(f"{STATE}.logs", {}))
            session.hearers.append(recorder.hear)
        found: Middleware = recorder
        return found


class Recorder(Middleware):
    """Of one session, a subagent's included. ``logs``: the conversation's open record, by transcript."""

    name = "inspector"

    def __init__(self, session: Session, logs: dict[str, Log]) -> None:
        self.session = session
        self.off = False
        self._logs = logs
        self._meter = Meter()

    # -- the five steps ----------------------------------------------------------------------------------------------
    async def around_model(self, request: ModelRequest, next: ModelCaller) -> AsyncIterator[StreamEvent]:
        line: dict[str, Any] = {"model": request.model}
        self._measure(request, line)
        usage, clock = Usage(), self.session.clock
        began = clock.monotonic()
        try:
            async with aclosing(next(request)) as events:  # type: ignore[type-var]
                async for event in events:
                    if event.get("type") in ENDS:
                        self._streamed(event, line, usage, clock.monotonic() - began)
                    yield event
        except Exception as error:
            line["error"] = {"kind": getattr(error, "kind", None) or type(error).__name__,
                             "status": getattr(error, "status", None)}
            raise
        except BaseException:  # the run was cancelled, or nobody listens any more
            line["cut"] = True
            raise
        finally:
            self._requested(line, usage, clock.monotonic() - began)

    async def around_tool(self, tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
        began = self.session.clock.monotonic()
        status = "cancelled"
        try:
            result = await next(tool, input, context)
            status = str(getattr(result, "status", "fatal_error"))
            return result
        except Exception as error:
            status = getattr(error, "code", None) or type(error).__name__
            raise
        finally:
            self._write("tool", {"call": context.call_id, "tool": tool.name, "status": status,
                                 "ms": _ms(self.session.clock.monotonic() - began)})

    async def around_hooks(self, event: Event, next: HookRunner) -> list[Outcome]:
        outcomes = await next(event)
        if outcomes:
            self._heard(event, outcomes)
        if type(event) is SessionEnd:
            self._closed()
        return outcomes

    async def around_decision(self, call: PermissionCall, call_id: str, next: Decider) -> Verdict:
        began = self.session.clock.monotonic()
        DECIDING.set(call_id)  # every call has a task of its own, or is alone
        verdict = await next(call, call_id)
        DECIDING.set("")
        self._decided(call, call_id, verdict, self.session.clock.monotonic() - began)
        return verdict

    async def around_approval(self, call: PermissionCall, verdict: Verdict, call_id: str, next: Asker) -> dict[str, Any]:
        began = self.session.clock.monotonic()
        answer: Any = None
        try:
            answer = await next(call, verdict, call_id)
            return answer  # type: ignore[no-any-return]
        finally:
            self._answered(call, call_id, verdict, answer, self.session.clock.monotonic() - began)

    def hear(self, message: Output) -> None:
        """Ends of turns, changes of the mode, a conversation that was cleared."""
        if message.session_id != self.session.id:
            return
        if isinstance(message, ResultMessage):
            self._write("result", _filled({
                "subtype": message.subtype, "reason": message.terminal_reason, "ms": message.duration_ms,
                "api": message.duration_api_ms, "turns": message.num_turns, "usd": message.total_cost_usd,
                "denials": len(message.permission_denials), "failed": message.is_error}))
        elif isinstance(message, SystemMessage) and message.subtype == "status" and "permissionMode" in message.data:
            self._write("mode", {"mode": message.data["permissionMode"]})
        elif isinstance(message, ConversationReset):
            self._write("cleared", {"to": message.new_conversation_id})

    # -- lines -------------------------------------------------------------------------------------------------------
    @_quietly
    def _measure(self, request: ModelRequest, line: dict[str, Any]) -> None:
        log = self._log()
        if request.history is self.session.history:
            parts, new = self._meter.fixed(self.session, request)
            if new:
                self._put("parts", {"id": parts["id"], "system": parts["system"], "tools": parts["tools"],
                                    "thinking": request.thinking, "effort": request.effort})
            line |= {"parts": parts["id"], **self._meter.history(request)}
            if request.tool_choice:
                line["choice"] = request.tool_choice.get("type")
        else:
            sizes: dict[str, int] = {}
            add_sizes(sizes, request.history.messages)
            line |= {"side": True, "sizes": sizes, "messages": len(request.history)}
        log.begin()

    @_quietly
    def _streamed(self, event: StreamEvent, line: dict[str, Any], usage: Usage, seconds: float) -> None:
        if event["type"] == "message_start":
            usage.take(event["message"].get("usage"))
            line |= {"message": event["message"].get("id"), "ttft": _ms(seconds)}
        else:
            usage.take(event.get("usage"))
            line["stop"] = event["delta"].get("stop_reason")

    @_quietly
    def _requested(self, line: dict[str, Any], usage: Usage, seconds: float) -> None:
        info = self.session.model_info
        if info.id != line["model"]:
            info = self.session.provider.resolve(line["model"]) or info
        if usage.prompt_tokens or usage.output_tokens:
            line |= {"read": usage.cache_read_input_tokens, "written": usage.cache_creation_input_tokens,
                     "fresh": usage.input_tokens, "out": usage.output_tokens}
            if info.prices is not None and info.id == line["model"]:
                line["usd"] = usage.cost(info.prices)
        line["window"] = info.context_window
        line["ms"] = _ms(seconds)
        self._put("request", line)

    @_quietly
    def _heard(self, event: Event, outcomes: list[Outcome]) -> None:
        """Silence is only worth a line where a gate was asked, or where it took its time."""
        if not isinstance(event, GATES) and all(o.answer is None and o.error is None and o.seconds < 0.001 for o in outcomes):
            return
        call = DECIDING.get() if isinstance(event, PermissionRequest) else getattr(event, "tool_use_id", None)
        self._put("hooks", _filled({
            "call": call, "event": type(event).__name__, "tool": getattr(event, "tool_name", None),
            "ms": _ms(max(o.seconds for o in outcomes)), "by": [_told(o) for o in outcomes]}))

    @_quietly
    def _decided(self, call: PermissionCall, call_id: str, verdict: Verdict, seconds: float) -> None:
        self._put("decision", _filled({
            "call": call_id, "tool": call.tool.name, "behavior": verdict.behavior, "reason": verdict.reason_type,
            "rule": verdict.rule, "source": verdict.source, "file": self._file_of(verdict), "mode": call.mode,
            "hook": call.hook, "rewrote": call.hook_rewrote, "ms": _ms(seconds)}))

    @_quietly
    def _answered(self, call: PermissionCall, call_id: str, verdict: Verdict, answer: Any, seconds: float) -> None:
        said = answer if isinstance(answer, dict) else {}
        self._put("approval", _filled({
            "call": call_id, "tool": call.tool.name, "behavior": said.get("behavior") or "none",
            "rewrote": said.get("updatedInput") is not None, "rules": len(said.get("updatedPermissions") or ()),
            "why": verdict.reason_type, "rule": verdict.rule, "source": verdict.source, "file": self._file_of(verdict),
            "ms": _ms(seconds)}))

    def _file_of(self, verdict: Verdict) -> str | None:
        """The settings file that the rule stands in."""
        layers = self.session.settings.by_layer(f"permissions.{verdict.behavior}") if verdict.rule else ()
        return next((layer.path for layer, rules in layers if isinstance(rules, list) and verdict.rule in rules), None)

    @_quietly
    def _write(self, kind: str, line: dict[str, Any]) -> None:
        self._put(kind, line)

    @_quietly
    def _closed(self) -> None:
        self._log().close()

    def _put(self, kind: str, line: dict[str, Any]) -> None:
        agent = {"agent": self.session.agent_id} if self.session.agent_id else {}
        self._log().write({"kind": kind, "at": _now(self.session), **agent, **line})

    def _log(self) -> Log:
        """The record of the conversation as it is called now; ``/clear`` gives it another name."""
        root = self.session.root
        log = self._logs.get(root.transcript.path)
        if log is None:
            for old in self._logs.values():
                old.close()
            self._logs.clear()
            log = self._logs[root.transcript.path] = Log(record_of(Path(root.transcript.path)))
            log.write({"kind": "session", "at": _now(root), "version": VERSION, "model": root.model_info.id,
                       "mode": root.state.permission_mode})
        return log


def _told(outcome: Outcome) -> dict[str, Any]:
    """What one implementation answered: decisions by value, all else by size."""
    line: dict[str, Any] = {"plugin": outcome.plugin, "ms": _ms(outcome.seconds)}
    if outcome.error is not None:
        line["error"] = _discreet(f"{type(outcome.error).__name__}: {outcome.error}")
    if outcome.answer is not None:
        if outcome.answer.source and outcome.answer.source != outcome.plugin:
            line["source"] = _discreet(outcome.answer.source)
        says: dict[str, Any] = {}
        _flatten(outcome.answer.to_wire(), says)
        if {says.get("decision"), says.get("permissionDecision"), says.get("behavior")} & {"allow", "approve"}:
            says = {k: len(v) if k in REASONS else v for k, v in says.items()}
        line["says"] = says
    return line


def _discreet(text: str) -> str:
    """A command or an error, without what looks like a secret in it."""
    return re.sub(GIVEN_AWAY, r"\1***", text, flags=re.IGNORECASE)[:REASON]


def _flatten(wire: dict[str, Any], says: dict[str, Any]) -> None:
    for key, value in wire.items():
        if key in ("hookSpecificOutput", "decision") and isinstance(value, dict):
            _flatten(value, says)
        elif key in KEPT:
            says[key] = value
        elif key in REASONS and isinstance(value, str):
            says[key] = value[:REASON]
        elif key != "hookEventName" and value is not None:
            says[key] = value if isinstance(value, bool) else len(value) if isinstance(value, str) else len(str(value))


def _filled(line: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if value not in (None, False, "", 0) or key == "ms"}


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


def _now(session: Session) -> int:
    """Milliseconds since the epoch, rounded down as a transcript's are."""
    return int(session.clock.now().timestamp() * 1000)
