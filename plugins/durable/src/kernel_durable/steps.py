"""The step runner: a middleware that keeps what every step came to, and gives it again instead of doing it twice."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from kernel import (
    Asker,
    Decider,
    Event,
    HookRunner,
    Middleware,
    ModelCaller,
    ModelError,
    ModelRequest,
    Outcome,
    PermissionCall,
    Session,
    StreamEvent,
    Tool,
    ToolContext,
    ToolResult,
    ToolRunner,
    Verdict,
)
from kernel_durable import values
from kernel_durable.engine import DurableError, Run
from kernel_durable.keeper import SCOPE, STATE, Keeper
from kernel_durable.unknown import is_made_of_steps, left, settled

OUTSIDE = frozenset({"Setup", "SessionStart", "SessionEnd"})
"""Events of a process: each one that has the run raises its own."""


def keeper_of(session: Session) -> Keeper:
    root = session.root
    found: Keeper | None = root.plugin_state.get(f"{STATE}.keeper")
    if found is None:
        found = root.plugin_state[f"{STATE}.keeper"] = Keeper(root)
    return found


class Durable(Middleware):
    """What is registered; every session has its own ``Steps``."""

    name = "durable"

    def for_session(self, session: Session) -> Middleware:
        return Steps(session)


class Steps(Middleware):
    """The steps of one context."""

    name = "durable"

    def __init__(self, session: Session) -> None:
        self.session = session
        self.keeper = keeper_of(session)
        self.agent = self.keeper.agent(session)

    # -- the model -----------------------------------------------------------------------------------------------------------
    async def around_model(self, request: ModelRequest, next: ModelCaller) -> AsyncIterator[StreamEvent]:
        run = await self.keeper.current()
        if run is None:
            async for event in next(request):
                yield event
            return
        if self.keeper.waiting:
            raise DurableError("the run is left for an approval")
        scope = self.agent.scope()
        ours = request.history is self.session.history and scope == f"{self.agent.path}{self.agent.answers}/"
        kind = f"side:{_said(request)}"
        key = f"{scope}model" if ours else self.agent.next(kind)
        found = self.keeper.found(run, key)
        if found is not None and ours and found["answers"] != _answered(request):
            raise self.keeper.differs(f"step {key} answered other tool results")
        if found is not None:
            for event in found["events"]:
                yield event
            self._came(ours, kind)
            if found["error"]:
                raise values.failed(found["error"])
            return
        if ours and (call := self.keeper.left_over(self.agent)):
            raise self.keeper.differs(f"the call {call} was run then, and is not now")
        events: list[StreamEvent] = []
        error: ModelError | None = None
        at, state = self.session.last_entry, self.session.state
        try:
            async for event in next(request):
                events.append(event)
                yield event
        except ModelError as caught:
            if not events:
                raise  # nothing came: the kernel may ask again
            error = caught
        await self.keeper.record(run, key, {
            "events": values.joined(events), "error": values.failure(error) if error else None, "answers": _answered(request),
            "at": at, "state": msgspec.to_builtins(state), "model": request.model})
        self._came(ours, kind)
        if error is not None:
            raise error

    def _came(self, ours: bool, kind: str) -> None:
        """One more answer; a request that failed is no step."""
        if ours:
            self.agent.answers += 1
        else:
            self.agent.count(kind)

    # -- tools ---------------------------------------------------------------------------------------------------------------
    async def around_tool(self, tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
        run = None if tool.internal else await self.keeper.current()
        if run is None:
            return await next(tool, input, context)
        if self.keeper.waiting:  # nobody asks the hooks any more, so nothing begins any more
            return left(self.keeper)
        key = f"{self.agent.scope()}tool:{context.call_id}"
        found = self.keeper.found(run, key)
        if found is not None:
            return self._again(tool, context, found)
        result = await settled(self, run, key, tool, input, context)
        if result is None:
            return await self._first(run, key, tool, input, context, next)
        if not self.keeper.waiting:
            await self.keeper.record(run, key, {"tool": tool.name, "input": input, "files": {},
                                                "result": values.result_wire(result, self.session.state)})
        return result

    async def _first(self, run: Run, key: str, tool: Tool, input: dict[str, Any], context: ToolContext,
                     next: ToolRunner) -> ToolResult:
        before = dict(context.read_files)
        inside = SCOPE.set(f"{key}/")
        wire: dict[str, Any] = {"tool": tool.name, "input": input}
        try:
            result = await next(tool, input, context)
            if isinstance(result, ToolResult):
                wire["result"] = values.result_wire(result, self.session.state)
            return result
        except (DurableError, ModelError):
            raise
        except Exception as error:
            wire["raised"] = values.raised(error)
            raise
        finally:
            SCOPE.reset(inside)
            stays_open = self.keeper.waiting and is_made_of_steps(tool)  # it did not come to its own end
            if ("result" in wire or "raised" in wire) and self.keeper.run is run and not stays_open:
                await self.keeper.record(run, key, {**wire, "files": values.files_wire(before, context.read_files)})

    def _again(self, tool: Tool, context: ToolContext, found: dict[str, Any]) -> ToolResult:
        """The result of a process before this one, with what it had seen of files."""
        if found["tool"] != tool.name:
            raise self.keeper.differs(f"the call {context.call_id} was one of {found['tool']} and is one of {tool.name}")
        context.read_files.update(values.files_of(found["files"]))
        if "raised" in found:
            raise values.raise_again(found["raised"])
        return values.result_of(found["result"])

    # -- hooks ---------------------------------------------------------------------------------------------------------------
    async def around_hooks(self, event: Event, next: HookRunner) -> list[Outcome]:
        if self.keeper.waiting or self.keeper.failure:
            return []  # whoever takes the run up asks them
        run = None if event.event_name in OUTSIDE else await self.keeper.current()
        if run is None:
            return await next(event)
        kind = f"hooks:{event.event_name}:{getattr(event, 'tool_use_id', None) or ''}"
        key = self.agent.next(kind)
        self.agent.count(kind)
        found = self.keeper.found(run, key)
        if found is not None:
            return values.outcomes_of(event.event_name, found["outcomes"])
        inside = SCOPE.set(f"{key}/")
        try:
            outcomes = await next(event)
        finally:
            SCOPE.reset(inside)
        if outcomes:
            await self.keeper.record(run, key, {"outcomes": values.outcomes_wire(outcomes)})
        return outcomes

    # -- permission ----------------------------------------------------------------------------------------------------------
    async def around_decision(self, call: PermissionCall, call_id: str, next: Decider) -> Verdict:
        run = await self.keeper.current()
        if run is not None and f"{self.agent.scope()}tool:{call_id}" in run.recorded:
            return Verdict(behavior="allow", message="it was allowed before it was run")
        verdict = await next(call, call_id)
        return msgspec.structs.replace(verdict, reason_type="no_one") if call_id in self.keeper.nobody else verdict

    async def around_approval(self, call: PermissionCall, verdict: Verdict, call_id: str, next: Asker) -> dict[str, Any]:
        run = await self.keeper.current()
        if run is None:
            return await next(call, verdict, call_id)
        key = f"{self.agent.scope()}approval:{call_id}"
        answer = self.keeper.found(run, key)
        if answer is None:
            answer = await next(call, verdict, call_id)
            if not isinstance(answer, dict) or self.keeper.waiting:
                return answer
            await self.keeper.record(run, key, answer)
        if answer.get("no_one"):
            self.keeper.nobody.add(call_id)
        return answer


def _said(request: ModelRequest) -> str:
    """The end of a request beside the conversation, in short: another request is another step."""
    return hashlib.sha256(values.text(request.history.messages[-1:]).encode()).hexdigest()[:12]


def _answered(request: ModelRequest) -> list[str]:
    """Ids of the calls that the end of the history answers."""
    found: list[str] = []
    for role, blocks in reversed(request.history.messages):
        if role == "assistant":
            break
        found[:0] = [str(b.get("tool_use_id")) for b in blocks if b.get("type") == "tool_result"]
    return found

