"""What stands around a session that is replayed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import msgspec

from kernel import (
    Asker,
    Decider,
    Entry,
    Event,
    Middleware,
    ModelCaller,
    ModelRequest,
    Outcome,
    Output,
    PermissionCall,
    Restored,
    Session,
    StreamEvent,
    Tool,
    ToolContext,
    ToolResult,
    ToolRunner,
    Verdict,
)
from kernel_replay import wire
from kernel_replay.compare import Difference, first
from kernel_replay.player import Player
from kernel_replay.recording import digest
from kernel_replay.roles import Step, implementations
from kernel_replay.strand import RUN, inside, live, within

if TYPE_CHECKING:
    from kernel import HookRunner


class ReplayedSession(Session):
    """A conversation whose outputs are compared."""

    def __init__(self, player: Player, *more: Any) -> None:
        self._player = player
        with within(RUN):
            super().__init__(player.harness, *more)

    def emit(self, message: Output) -> None:
        if live():
            self._player.said(message)
        super().emit(message)


class ReplayedTranscript:
    """A transcript that was recorded: nothing is kept, everything is compared."""

    def __init__(self, player: Player, agent: str, told: dict[str, Any], facts: dict[str, dict[str, Any]]) -> None:
        self._player, self._agent, self._facts = player, agent, facts
        self.session_id: str = told["id"]
        self.path: str = player.here(told["path"])
        self.source: Any = told["source"]
        self.kept: bool = told["kept"]
        self.restored = msgspec.convert(told["restored"], Restored)
        self.problems: list[str] = []
        self._children: dict[str, dict[str, Any]] = {}

    def append(self, entries: list[Entry], *, cwd: str) -> None:
        for entry in entries:
            self._player.entered(self._agent, {"cwd": cwd, "entry": entry})

    def set(self, kind: str, value: str) -> None:
        self._player.entered(self._agent, {"fact": kind, "value": value})

    def child(self, agent_id: str, meta: dict[str, Any]) -> ReplayedTranscript:
        self._children[agent_id] = {**self._children.get(agent_id, {}), **meta}
        told = self._facts.get(agent_id) or {"path": "", "source": "startup", "kept": False, "restored": {}}
        return ReplayedTranscript(self._player, agent_id, {"id": self.session_id, **told}, self._facts)

    def children(self) -> dict[str, dict[str, Any]]:
        return dict(self._children)

    def close(self) -> None:
        pass


class ReplayedPart:
    """A prompt part that is asked, for the steps that it has, and whose text is the recorded one, unless its plugin differs."""

    def __init__(self, part: Any, player: Player) -> None:
        self.name, self.layer = part.name, part.layer
        self._part, self._player = part, player

    async def text(self, session: Session) -> str:
        player = self._player
        step = player.steps.next("part", session, self.name)
        if step not in player.begins:
            return str(await self._part.text(session))
        await player.begin(step, None)
        now, failed = "", None
        try:
            now = await self._part.text(session)
        except Exception as error:
            failed = error
        came = await player.end(step)
        if not player.part_is_live(self.name):
            now, failed = str(came.get("text", "")), wire.raised(came["error"]) if "error" in came else None
        if failed is not None:
            raise failed
        return now


async def player_context(player: Player, name: str, work: Any, session: Session) -> None:
    """What an extension that looks outside added before this request."""
    step = player.steps.next("context", session, name)
    if step not in player.begins or player.tools_are_live:
        await work(session)
        player.over(step)
        return
    await player.begin(step, None)
    came = await player.end(step)
    if "error" in came:
        raise wire.raised(came["error"])
    session.pending += came.get("added", [])
    session.read_files.update(wire.seen(came.get("files", {})))


class Replayer(Middleware):
    """The innermost middleware: answers in the outside's place."""

    name = "replay"

    def __init__(self, player: Player) -> None:
        self._player = player
        self.sessions: dict[int, Session] = {}

    def for_session(self, session: Session) -> Middleware:
        if id(session) not in self.sessions:
            self.sessions[id(session)] = session
            answer_checks(session, self._player)
            if spill := self._player.recording.header.spill:
                session.plugin_state.setdefault("kernel.spill", self._player.here(spill))
        return Answers(session, self._player)

    def of_agent(self, agent: str) -> Session | None:
        return next((s for s in reversed(self.sessions.values()) if (s.agent_id or "") == agent), None)


class Answers(Middleware):
    """The steps of one session."""

    name = "replay"

    def __init__(self, session: Session, player: Player) -> None:
        self._session, self._player = session, player

    async def around_model(self, request: ModelRequest, next: ModelCaller) -> AsyncGenerator[StreamEvent]:
        player = self._player
        step = player.steps.next("model", self._session, "")
        info = self._session.model_info
        told = wire.folded(wire.request(request), self._keep)
        player.requests += 1
        await player.begin(step, {"request": told, "info": info if info.id == request.model else None})
        try:
            for number in player.pieces.get(step, ()):
                await player.turn(number)
                player.consume(number)
                yield player.events[number].read()
            came = await player.end(step)
        except GeneratorExit:
            player.over(step)
            raise
        if "error" in came:
            raise wire.raised(came["error"])

    def _keep(self, value: bytes) -> str:
        value = self._player.clean(value)
        name = digest(value)
        self._player.fresh[name] = value
        return name

    async def around_tool(self, tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
        if not live():
            return await next(tool, input, context)
        player = self._player
        step = player.steps.next("tool", self._session, f"{tool.name} {context.call_id}")
        outside = player.roles.tool_is_outside(tool)
        plugin = player.roles.plugin_of(tool)
        name = plugin.name if plugin else ""
        await player.begin(step, {"input": input, "outside": outside}, plugin=name)
        if not outside or player.tools_are_live:
            try:
                with inside(context.call_id):
                    result = await next(tool, input, context)
            except Exception as error:
                told = {"error": wire.error(error)}
                await player.end(step, lambda: self._with_files(step, told), plugin=name)
                raise
            except BaseException:
                player.over(step)
                raise
            came = {"result": wire.result(result, self._session.state)}
            await player.end(step, lambda: self._with_files(step, came), plugin=name)
            return result
        came = await player.end(step)
        self._session.read_files.update(wire.seen(came.get("files", {})))
        if "error" in came:
            raise wire.raised(came["error"])
        return wire.tool_result(came["result"])

    def _with_files(self, step: Step, came: dict[str, Any]) -> dict[str, Any]:
        """Times and digests of files that were seen are the disk's; what the model was told of them is compared."""
        was = self._player.come(step)
        return {**came, "files": was["files"]} if "files" in was else came

    async def around_hooks(self, event: Event, next: HookRunner) -> list[Outcome]:
        if not live():
            return await next(event)
        player, session = self._player, self._session
        step = player.steps.of_event(session, event)
        told = wire.event(event)
        if step not in player.begins and not player.added and not player.gone:
            await player.begin(step, told)
        known = step in player.begins
        if known:
            await player.begin(step, told)
        order = implementations(session, event)
        was = player.come(step) if known else {}
        kept = [] if player.hooks_are_live else \
            [n for n in order if n in was.get("outside", ()) or player.roles.hook_is_outside(n, event)]
        try:
            now = await player.roles.fire(session, event, lambda name: name not in kept) if len(kept) < len(order) else []
        except BaseException:
            player.over(step)
            raise
        if known:
            came = await player.end(step)
            rows = came.get("outcomes", [])
            now += [wire.outcome(event.event_name, row) for row in rows if row["plugin"] in kept]
            self._compare(step, rows, now)
            _rank(rows, now)
        if event.event_name == "WorktreeCreate" and not player.tools_are_live and not _names_a_folder(now):
            player.differ(Difference(kind="failed", step=step, told="an agent gets a checkout of its own here, made by git, and "
                                     "a replay makes none; --live tools does, in the folder of the run"))
            await anyio.sleep_forever()
        return sorted(now, key=lambda outcome: order.index(outcome.plugin))

    def _compare(self, step: Step, rows: list[dict[str, Any]], now: list[Outcome]) -> None:
        def spoken(told: list[dict[str, Any]]) -> dict[str, list[Any]]:
            found: dict[str, list[Any]] = {}
            for row in told:
                if "answer" in row or "error" in row:
                    said = {k: v for k, v in row.items() if k in ("answer", "error")}
                    found.setdefault(row["plugin"], []).append(said)
            return found
        was, got = spoken(rows), spoken(msgspec.json.decode(self._player.clean(wire.encode(wire.outcomes(now)))))
        for plugin in sorted(was.keys() | got.keys()):
            if found := first(was.get(plugin, []), got.get(plugin, [])):
                path, expected, here = found
                there = self._player.harness.plugins.get(plugin)
                gone = "" if there is None or there.state == "ready" else f"the plugin is {there.state}"
                self._player.differ(Difference(kind="differs", step=step, event=self._player.ends[step] + 1, path=path,
                                               expected=expected, got=here, plugin=plugin, told=gone))
                return

    async def around_decision(self, call: PermissionCall, call_id: str, next: Decider) -> Verdict:
        player = self._player
        step = player.steps.next("decision", self._session, f"{call.tool.name} {call_id}")
        await player.begin(step, wire.call(call))
        if not player.decision_is_live(step):
            came = await player.end(step)
            if "error" in came:
                raise wire.raised(came["error"])
            return wire.verdict(came["result"])
        try:
            verdict = await next(call, call_id)
        except BaseException:
            player.over(step)
            raise
        owner = player.harness.plugins.provider("policies", str(player.harness.settings.own("kernel.policy") or "rules"))
        await player.end(step, lambda: {"result": verdict}, plugin=owner.name if owner else "")
        return verdict

    async def around_approval(self, call: PermissionCall, verdict: Verdict, call_id: str, next: Asker) -> dict[str, Any]:
        player = self._player
        step = player.steps.next("approval", self._session, f"{call.tool.name} {call_id}")
        await player.begin(step, {**wire.call(call), "verdict": verdict})
        came = await player.end(step)
        if "error" in came:
            raise wire.raised(came["error"])
        answer: dict[str, Any] = came["result"]
        return answer


def _names_a_folder(outcomes: list[Outcome]) -> bool:
    """Whether hooks made the checkout; then nobody else does."""
    named = [getattr(outcome.answer, "worktree_path", None) for outcome in outcomes]
    return any(named) and "" not in named


def _rank(rows: list[dict[str, Any]], now: list[Outcome]) -> None:
    """Answers count in the order in which they were there when it was recorded; what is new counts last."""
    ranks: dict[str, list[int]] = {}
    for row in rows:
        if "answer" in row:
            ranks.setdefault(row["plugin"], []).append(row["rank"])
    for outcome in now:
        if outcome.answer is not None:
            left = ranks.get(outcome.plugin)
            outcome.answer.rank = left.pop(0) if left else len(rows) + outcome.answer.rank


def answer_checks(session: Session, player: Player) -> None:
    """Tools that reach outside make of an input what they made of it."""
    offer = session.toolbox.offer

    def answered(tools: Iterable[Tool], *, deferred: bool = False) -> None:
        tools = list(tools)
        for tool in tools:
            if player.roles.tool_is_outside(tool) and not player.tools_are_live and "prepare_input" not in vars(tool):
                tool.prepare_input = partial(_answered, player, tool, "prepare_input")  # type: ignore[method-assign]
                tool.validate_input = partial(_answered, player, tool, "validate_input")  # type: ignore[method-assign, assignment]
        offer(tools, deferred=deferred)

    session.toolbox.offer = answered  # type: ignore[method-assign]


def _answered(player: Player, tool: Tool, method: str, input: dict[str, Any], context: ToolContext) -> dict[str, Any]:
    step = player.steps.next("checks", context.session, f"{method} {tool.name} {context.call_id}")
    number = player.checks.get(step)
    came = player.events[number].read() if number is not None else {}
    if "error" in came:
        raise wire.raised(came["error"])
    found: dict[str, Any] = came.get("input", input)
    return found


async def nobody(call: PermissionCall, verdict: Verdict, call_id: str) -> dict[str, Any]:
    """Stands where somebody could be asked; the answers come from the recording."""
    await anyio.lowlevel.checkpoint()
    raise RuntimeError("nobody can be asked in a replay")
