"""What stands around a session that is recorded: a middleware for its steps, taps for what comes and goes beside them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from kernel import (
    Asker,
    Block,
    Decider,
    Event,
    HookRunner,
    Middleware,
    ModelCaller,
    ModelRequest,
    Outcome,
    Output,
    PermissionCall,
    ResultMessage,
    Session,
    StreamEvent,
    Tool,
    ToolContext,
    ToolResult,
    ToolRunner,
    Transcript,
    Verdict,
    encode_output,
)
from kernel_replay import wire
from kernel_replay.roles import implementations, ranked
from kernel_replay.strand import FRONT, RUN, inside, live, strand, within
from kernel_replay.tape import Tape
from kernel_replay.taps import Background, Taped, TapedInbox, TapedSpending, changes, tap_checks

if TYPE_CHECKING:
    from kernel import Harness

class RecordedSession(Session):
    """A conversation whose inputs and outputs are written down."""

    def __init__(self, tape: Tape, harness: Harness, transcript: Transcript, emit: Any, parent: Session | None = None) -> None:
        self._tape = tape
        with within(RUN):
            super().__init__(harness, transcript, emit, parent)

    @property
    def transcript(self) -> Transcript:
        return self._transcript

    @transcript.setter
    def transcript(self, opened: Transcript) -> None:
        kept = {"id": opened.session_id, "path": opened.path, "source": opened.source, "kept": opened.kept,
                "restored": msgspec.to_builtins(opened.restored)}
        self._tape.write("fact", ("session", "", opened.session_id, 0), kept)
        self._transcript: Transcript = Taped(opened, self._tape, "")

    def emit(self, message: Output) -> None:
        self._tape.write("out", ("out", "", "", 0), msgspec.Raw(encode_output(message)), by="" if live() else strand())
        super().emit(message)

    # -- what is asked of it -----------------------------------------------------------------------------------------------
    async def _asked(self, name: str, work: Callable[[], Any], **given: Any) -> Any:
        if strand() != FRONT:
            return await work()
        step = self._tape.steps.next("input", None, name)
        asker = {"side_by_side": getattr(self.asker, "side_by_side", False)} if self.asker is not None else None
        self._tape.write("input", step, {**given, "asker": asker, "facts": self.init_facts})
        try:
            with within(RUN):
                return await work()
        finally:
            self._tape.write("returned", step)

    def _told(self, name: str, work: Callable[[], Any], **given: Any) -> Any:
        if strand() != FRONT:
            return work()
        step = self._tape.steps.next("input", None, name)
        self._tape.write("input", step, given)
        with within(RUN):
            return work()

    async def start(self) -> None:
        if not self._started:
            await self._asked("start", super().start)

    async def submit(self, prompt: str | list[Block] | None, *, uuid: str | None = None,
                     origin: dict[str, Any] | None = None) -> ResultMessage:
        work = partial(super().submit, prompt, uuid=uuid, origin=origin)
        result: ResultMessage = await self._asked("submit", work, prompt=prompt, uuid=uuid, origin=origin)
        return result

    async def clear(self, title: str | None = None) -> str:
        new: str = await self._asked("clear", partial(super().clear, title), title=title)
        return new

    async def reload(self) -> Any:
        return await self._asked("reload", super().reload)

    async def close(self, reason: str = "other") -> None:
        if not self._closed:
            await self._asked("close", partial(super().close, reason), reason=reason)
            self._tape.close()

    def interrupt(self) -> None:
        self._told("interrupt", super().interrupt)

    def set_mode(self, mode: str) -> None:
        self._told("set_mode", partial(super().set_mode, mode), mode=mode)

    def switch(self, model: str) -> None:
        self._told("switch", partial(super().switch, model), model=model)

    def set_title(self, title: str | None) -> None:
        self._told("set_title", partial(super().set_title, title), title=title)

    def add_context(self, text: str) -> None:
        super().add_context(text)
        if not live() and not strand().startswith("context "):  # that is kept with its step
            self._tape.effect("context", None, text)
            self._tape.foreign.append(self.pending[-1])


# -- the steps ---------------------------------------------------------------------------------------------------------------
class Recorder(Middleware):
    """The innermost middleware: what it sees is what the outside said."""

    name = "replay"

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def for_session(self, session: Session) -> Middleware:
        tape = self._tape
        if not isinstance(session.inbox, TapedInbox):
            session.inbox = TapedInbox(session, tape)
            tap_checks(session, tape)
            if session.parent is None:
                session.spending, session.background_tasks = TapedSpending(tape), Background(tape, session)
            if tape.spill:
                session.plugin_state.setdefault("kernel.spill", tape.spill)
        return Steps(session, tape)


class Steps(Middleware):
    """The steps of one session."""

    name = "replay"

    def __init__(self, session: Session, tape: Tape) -> None:
        self._session, self._tape = session, tape

    async def around_model(self, request: ModelRequest, next: ModelCaller) -> AsyncGenerator[StreamEvent]:
        if not live():
            async with aclosing(next(request)) as events:  # type: ignore[type-var]
                async for event in events:
                    yield event
            return
        step = self._tape.steps.next("model", self._session, "")
        told = wire.folded(wire.request(request), self._tape.keep)
        info = self._session.model_info
        self._tape.write("begin", step, {"request": told, "info": info if info.id == request.model else None})
        came: dict[str, Any] = {"cancelled": True}
        try:
            async with aclosing(next(request)) as events:  # type: ignore[type-var]
                async for event in events:
                    self._tape.write("piece", step, event)
                    yield event
            came = {"over": True}
        except GeneratorExit:
            came = {"left": True}
            raise
        except Exception as error:
            came = {"error": wire.error(error)}
            raise
        finally:
            self._tape.write("end", step, came)

    async def around_tool(self, tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
        if not live():
            return await next(tool, input, context)
        step = self._tape.steps.next("tool", self._session, f"{tool.name} {context.call_id}")
        outside = self._tape.roles.tool_is_outside(tool)
        self._tape.write("begin", step, {"input": input, "outside": outside})
        before = dict(self._session.read_files)
        came: dict[str, Any] = {"cancelled": True}
        try:
            with within(" ".join(map(str, step)) if outside else RUN), inside(context.call_id):
                result = await next(tool, input, context)
            came = {"result": wire.result(result, self._session.state)}
            return result
        except Exception as error:
            came = {"error": wire.error(error)}
            raise
        finally:
            if outside:
                if changed := changes(before, self._session.read_files):
                    came["files"] = changed
            self._tape.write("end", step, came)

    async def around_hooks(self, event: Event, next: HookRunner) -> list[Outcome]:
        session, roles = self._session, self._tape.roles
        if not live():
            return await next(event)
        step = self._tape.steps.of_event(session, event)
        self._tape.write("begin", step, wire.event(event))
        came: dict[str, Any] = {"cancelled": True}
        try:
            order = implementations(session, event)
            outside = {name for name in order if roles.hook_is_outside(name, event)}
            outcomes: list[Outcome] = []
            if len(outside) < len(order):
                outcomes += await roles.fire(session, event, lambda name: name not in outside)
            if outside:
                with within(" ".join(map(str, step))):
                    outcomes += await roles.fire(session, event, lambda name: name in outside)
            outcomes = ranked(outcomes, order) if outside and len(order) > 1 else outcomes
            came = {"outcomes": wire.outcomes(outcomes), "outside": sorted(outside)}
            return outcomes
        finally:
            self._tape.write("end", step, came)

    async def around_decision(self, call: PermissionCall, call_id: str, next: Decider) -> Verdict:
        decided = partial(next, call, call_id)
        verdict: Verdict = await self._step("decision", f"{call.tool.name} {call_id}", wire.call(call), decided)
        return verdict

    async def around_approval(self, call: PermissionCall, verdict: Verdict, call_id: str, next: Asker) -> dict[str, Any]:
        told = {**wire.call(call), "verdict": verdict}
        asked = partial(self._outside, partial(next, call, verdict, call_id))
        answer: dict[str, Any] = await self._step("approval", f"{call.tool.name} {call_id}", told, asked)
        return answer

    async def _outside(self, work: Callable[[], Any]) -> Any:
        with within("approval"):
            return await work()

    async def _step(self, kind: str, name: str, told: Any, work: Callable[[], Any]) -> Any:
        if not live():
            return await work()
        step = self._tape.steps.next(kind, self._session, name)
        self._tape.write("begin", step, told)
        came: dict[str, Any] = {"cancelled": True}
        try:
            result = await work()
            came = {"result": result}
            return result
        except Exception as error:
            came = {"error": wire.error(error)}
            raise
        finally:
            self._tape.write("end", step, came)
