"""The middleware: stands around every step of a run, sees what happens and changes nothing.

What is done here is short and goes into the pipeline's queue. A fault of this plugin is written to the debug log and never
reaches the run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from kernel import (
    Asker,
    Child,
    Decider,
    Event,
    HookRunner,
    Middleware,
    ModelCaller,
    ModelRequest,
    Options,
    Outcome,
    PermissionCall,
    Session,
    Settings,
    StreamEvent,
    Tool,
    ToolContext,
    ToolResult,
    ToolRunner,
    Verdict,
)
from kernel_telemetry import switches
from kernel_telemetry.asks import Asks
from kernel_telemetry.calls import MENTION, Call, Calls
from kernel_telemetry.hearing import Hearing
from kernel_telemetry.hooks import Hooks
from kernel_telemetry.pipeline import Pipeline
from kernel_telemetry.recorder import STATE, Recorder, current, quietly
from kernel_telemetry.redaction import mcp_of
from kernel_telemetry.spans import Place, now


def outlets(pipeline: Pipeline) -> Any:
    """Made in the pipeline's thread: the SDK is imported here and nowhere earlier."""
    from kernel_telemetry.exporters import outlets

    return outlets(pipeline)


class Telemetry(Middleware):
    """One per harness; each context gets a ``Watch`` of its own."""

    name = "telemetry"

    def __init__(self, found: switches.Switches) -> None:
        self.pipeline = Pipeline(found, outlets)

    def for_session(self, session: Session) -> Middleware:
        for problem in self.pipeline.switches.problems:
            session.harness.announce(f"plugin telemetry: {problem}")
        watch: Watch | None = quietly(session, watch_of, self, session) if self.pipeline.switches.any else None
        return watch or self


def telemetry(settings: Settings, options: Options | None) -> Telemetry | None:
    """What a harness gets; ``None`` where nothing would be exported and nothing has to be said."""
    found = switches.read(settings, options)
    return Telemetry(found) if found.any or found.problems else None


def watch_of(telemetry: Telemetry, session: Session) -> Watch:
    """The watch of a context, made when it is first asked for."""
    watch = session.plugin_state.get(STATE)
    if watch is None:
        above = session.root.plugin_state.get(STATE) if session.parent is not None else None
        recorder = above.recorder if above is not None else Recorder(session, telemetry.pipeline)
        watch = session.plugin_state[STATE] = Watch(session, recorder)
        session.hearers.append(watch.hearing.hear)
        if session.parent is None:
            telemetry.pipeline.log = session.debug
            telemetry.pipeline.users += 1
    assert isinstance(watch, Watch)
    return watch


class Watch(Middleware):
    """What is seen of one context: a conversation, or a subagent."""

    name = "telemetry"

    def __init__(self, session: Session, recorder: Recorder) -> None:
        self.session = session
        self.recorder = recorder
        self._above: Place | None = None
        self.asks = Asks(self)
        self.calls = Calls(self)
        self.hooks = Hooks(self)
        self.hearing = Hearing(self)

    # -- where things belong -------------------------------------------------------------------------------------------------
    def parent(self) -> Place | None:
        """What requests and calls of this context stand under: the interaction, or the call that started the agent."""
        if self._above is None and isinstance(self.session, Child):
            self._above = self.recorder.calls.get(str(self.session.spec.tool_use_id), ("", None))[1]
        if self._above is not None:
            return self._above
        return self.recorder.interaction.place if self.recorder.interaction else self.recorder.outer

    def agent_ids(self) -> dict[str, Any]:
        above = self.session.parent
        return {"agent_id": self.session.agent_id, "parent_agent_id": above.agent_id if above is not None else None}

    def scope_of(self, tool: str) -> str | None:
        """Where the MCP server of a tool was configured."""
        mcp = mcp_of(tool)
        return self.hearing.scopes().get(mcp[0], (None, None))[0] if mcp is not None else None

    # -- the five steps --------------------------------------------------------------------------------------------------------
    async def around_model(self, request: ModelRequest, next: ModelCaller) -> AsyncIterator[StreamEvent]:
        attempt = quietly(self.session, self.asks.begin, request)
        stream = next(request if attempt is None else attempt.request)
        try:
            async with aclosing(stream) as events:  # type: ignore[type-var]
                async for event in events:
                    if attempt is not None:
                        quietly(self.session, attempt.saw, event)
                    yield event
        except BaseException as error:
            if attempt is not None:
                quietly(self.session, self.asks.failed, attempt, error)
            raise
        if attempt is not None:
            quietly(self.session, self.asks.ended, attempt)

    async def around_tool(self, tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
        if context.call_id.startswith(MENTION):
            return await self._mention(tool, input, context, next)
        call: Call | None = quietly(self.session, self.calls.begin, tool, input, context)
        token = current.set((self.session, call.execution)) if call is not None and call.execution is not None else None
        try:
            result = await next(tool, input, context)
        except BaseException as error:
            if call is not None:
                quietly(self.session, self.calls.end, call, None, error)
            raise
        finally:
            if token is not None:
                current.reset(token)
        if call is not None:
            quietly(self.session, self.calls.end, call, result, None)
        return result

    async def _mention(self, tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
        failed = True
        try:
            result = await next(tool, input, context)
            failed = result.failed
            return result
        finally:
            quietly(self.session, self.recorder.event, "at_mention", {"mention_type": "file", "success": not failed})

    async def around_hooks(self, event: Event, next: HookRunner) -> list[Outcome]:
        running = quietly(self.session, self.hooks.begin, event)
        try:
            outcomes = await next(event)
        except BaseException:
            quietly(self.session, self.hooks.end, event, running, [])
            raise
        quietly(self.session, self.hooks.end, event, running, outcomes)
        return outcomes

    async def around_decision(self, call: PermissionCall, call_id: str, next: Decider) -> Verdict:
        asked: Call | None = quietly(self.session, self.calls.ask, call, call_id)
        try:
            verdict = await next(call, call_id)
        except BaseException:
            if asked is not None:
                quietly(self.session, self.calls.answered, asked, None)
            raise
        if asked is not None:
            quietly(self.session, self.calls.answered, asked, verdict)
        return verdict

    async def around_approval(self, call: PermissionCall, verdict: Verdict, call_id: str, next: Asker) -> dict[str, Any]:
        began = now()
        answer: dict[str, Any] = {"behavior": "deny", "interrupt": True}
        try:
            answer = await next(call, verdict, call_id)
            return answer
        finally:
            quietly(self.session, self._asked, call, call_id, answer, began)

    def _asked(self, call: PermissionCall, call_id: str, answer: Any, began: int) -> None:
        self.recorder.waited += now() - began
        self.recorder.busy.append((began, now()))
        self.calls.get(call_id, call.tool.name, call.input).answer = answer if isinstance(answer, dict) else {}
