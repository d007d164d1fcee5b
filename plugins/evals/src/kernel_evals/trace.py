"""What a case does, written down as it happens, and the faults that are planted in it. Only in the process of a case.

A line of JSON for each model request, call, decision, event and compaction. The file is what measures are computed from.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from kernel import (
    Decider,
    Event,
    HookRunner,
    Middleware,
    ModelCaller,
    ModelRequest,
    Outcome,
    PermissionCall,
    Session,
    StreamEvent,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    ToolRunner,
    UsageError,
    Verdict,
    text_of,
)
from kernel_evals.suite import Injection

MOST_TEXT = 4000


class Plan(msgspec.Struct, kw_only=True):
    """What the parent asks for: ``plan.json`` in the trace's folder."""

    inject: list[Injection] = msgspec.field(default_factory=list)
    lose: str | None = None
    hide_failures: bool = False


class Writer:
    """The file, and what all sessions of the process share."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.plan = plan
        self.injected = [0] * len(plan.inject)
        self.compacted = False
        self._file = os.open(folder / "trace.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, kind: str, **fields: Any) -> None:
        line = json.dumps({"kind": kind, **fields}, default=str, ensure_ascii=False)
        os.write(self._file, line.encode("utf-8", "replace") + b"\n")


class Trace(Middleware):
    """See the module."""

    name = "evals-trace"

    def __init__(self, writer: Writer, agent: str | None = None) -> None:
        self._writer = writer
        self._agent = agent

    @classmethod
    def open(cls, folder: str) -> Trace:
        """:raises UsageError: the folder holds no plan."""
        try:
            plan = msgspec.json.decode(Path(folder, "plan.json").read_bytes(), type=Plan)
            return cls(Writer(Path(folder), plan))
        except (OSError, msgspec.MsgspecError) as error:
            raise UsageError(f"no plan: {error}", context="KERNEL_EVALS_TRACE") from None

    def for_session(self, session: Session) -> Trace:
        return Trace(self._writer, session.agent_id)

    # -- the model -----------------------------------------------------------------------------------------------------------
    async def around_model(self, request: ModelRequest, next: ModelCaller) -> AsyncIterator[StreamEvent]:
        lost = self._writer.plan.lose
        if lost and self._writer.compacted:
            request = _without(request, lost)
        began, first = time.monotonic(), None
        usage: dict[str, Any] = {}
        error = "the stream was left"
        try:
            async for event in next(request):
                first = first if first is not None else time.monotonic()
                if event.get("type") == "message_start":
                    usage |= event.get("message", {}).get("usage") or {}
                elif event.get("type") == "message_delta":
                    usage |= event.get("usage") or {}
                yield event
            error = ""
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
            raise
        finally:
            self._writer.write(
                "request", agent=self._agent, model=request.model, compacted=self._writer.compacted, error=error, usage=usage,
                system=text_of(request.system), messages=request.history.wire(), tools=[t.get("name") for t in request.tools],
                ttft_ms=_ms(began, first) if first is not None else None, ms=_ms(began, time.monotonic()))

    # -- tools ---------------------------------------------------------------------------------------------------------------
    async def around_tool(self, tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
        began = time.monotonic()
        facts = {"agent": self._agent, "tool": tool.name, "id": context.call_id, "input": input}
        number = self._injection(tool.name, input)
        try:
            if number is None:
                result = await next(tool, input, context)
            else:
                planted = self._writer.plan.inject[number]
                if planted.error is not None:
                    raise ToolError(planted.error, planted.text)
                result = ToolResult(content=planted.result or "", status=planted.status)
        except Exception as error:
            code = getattr(error, "code", "crashed")
            self._writer.write("call", **facts, status="fatal_error", error_code=code, ms=_ms(began, time.monotonic()),
                               text=str(error)[:MOST_TEXT], injected=number is not None)
            if self._writer.plan.hide_failures:
                return ToolResult(content="(no output)")
            raise
        self._writer.write("call", **facts, status=result.status, error_code=result.error_code, ms=_ms(began, time.monotonic()),
                           text=_text(result.content)[:MOST_TEXT], injected=number is not None,
                           evidence=list(result.evidence_ids))
        if result.failed and self._writer.plan.hide_failures:
            return ToolResult(content="(no output)")
        return result

    def _injection(self, tool: str, input: dict[str, Any]) -> int | None:
        text = json.dumps(input, ensure_ascii=False, default=str)
        for number, planted in enumerate(self._writer.plan.inject):
            if planted.tool == tool and planted.input in text and self._writer.injected[number] < planted.times:
                self._writer.injected[number] += 1
                return number
        return None

    # -- events and decisions --------------------------------------------------------------------------------------------------
    async def around_hooks(self, event: Event, next: HookRunner) -> list[Outcome]:
        outcomes = await next(event)
        name = type(event).__name__
        if name == "PostCompact":
            self._writer.compacted = True
        facts = {f: getattr(event, f) for f in ("trigger", "tool_name", "tool_use_id", "error") if hasattr(event, f)}
        self._writer.write("event", agent=self._agent, event=name, **facts,
                           plugins=[[o.plugin, round(o.seconds * 1000, 3), o.error is not None] for o in outcomes])
        return outcomes

    async def around_decision(self, call: PermissionCall, call_id: str, next: Decider) -> Verdict:
        verdict = await next(call, call_id)
        self._writer.write("decision", agent=self._agent, tool=call.tool.name, id=call_id, input=call.input,
                           behavior=verdict.behavior, source=verdict.reason_type, rule=verdict.rule)
        return verdict



def _without(request: ModelRequest, text: str) -> ModelRequest:
    """The request with a text taken out of its history: what a harness would send that had lost it."""
    from kernel import History

    def out(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(text, "(lost)")
        if isinstance(value, dict):
            return {k: out(v) for k, v in value.items()}
        return [out(v) for v in value] if isinstance(value, list) else value

    messages = [(role, out(blocks)) for role, blocks in request.history.messages]
    return msgspec.structs.replace(request, history=History(messages))


def _text(content: Any) -> str:
    return content if isinstance(content, str) else text_of(content)


def _ms(began: float, ended: float) -> float:
    return round((ended - began) * 1000, 3)
