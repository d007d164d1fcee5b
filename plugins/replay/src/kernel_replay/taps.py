"""What comes to a session, and goes from it, beside the steps of a run: written down on its way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from kernel import (
    Entry,
    Extension,
    Harness,
    Inbox,
    ModelInfo,
    ReadState,
    Registry,
    Session,
    Spending,
    Tool,
    ToolContext,
    Transcript,
    Usage,
)
from kernel_replay import wire
from kernel_replay.strand import RUN, live, strand, within
from kernel_replay.tape import Tape

TASKS = "tasks"
"""``session.root.plugin_state[TASKS]``: background tasks of all kinds, by id."""


class Taped:
    """A transcript whose entries are written down as well. Everything else of it is the real one's."""

    def __init__(self, inner: Transcript, tape: Tape, agent: str) -> None:
        self.__dict__.update(_inner=inner, _tape=tape, _agent=agent)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)

    def append(self, entries: list[Entry], *, cwd: str) -> None:
        for entry in entries:
            self._tape.write("entry", ("entry", self._agent, "", 0), {"cwd": cwd, "entry": entry}, by="" if live() else strand())
        self._inner.append(entries, cwd=cwd)

    def set(self, kind: str, value: str) -> None:
        self._tape.write("entry", ("entry", self._agent, "", 0), {"fact": kind, "value": value}, by="" if live() else strand())
        self._inner.set(kind, value)

    def child(self, agent_id: str, meta: dict[str, Any]) -> Any:
        made = self._inner.child(agent_id, meta)
        self._tape.write("fact", ("agent", agent_id, "", 0), {"path": made.path, "source": made.source, "kept": made.kept,
                                                            "restored": msgspec.to_builtins(made.restored)})
        return Taped(made, self._tape, agent_id)


class TapedInbox(Inbox):
    """Letters that something outside of the run wrote are written down."""

    def __init__(self, session: Session, tape: Tape) -> None:
        super().__init__(session)
        self._of, self._tape = session, tape
        self.awaited = Awaited(partial(tape.effect, "await"), session)

    def post(self, text: str, origin: dict[str, Any] | None = None) -> None:
        if not live():
            self._tape.effect("letter", self._of.agent_id, text, origin)
        super().post(text, origin)

    def settle(self, id: str) -> None:
        if not live():
            self._tape.effect("settle", self._of.agent_id, id)
        with within(RUN):
            super().settle(id)


class Awaited(set[str]):
    """Ids that are awaited."""

    def __init__(self, told: Callable[..., None], session: Session) -> None:
        super().__init__()
        self._told, self._session = told, session

    def add(self, id: str) -> None:
        if not live():
            self._told(self._session.agent_id, id)
        super().add(id)


class Background(dict[str, dict[str, Any]]):
    """What runs in the background. Beside it stands the table that TaskOutput and TaskStop look into."""

    def __init__(self, tape: Tape, root: Session) -> None:
        super().__init__()
        self._tape, self._root = tape, root

    def __setitem__(self, id: str, task: dict[str, Any]) -> None:
        if not live():
            known = self._root.plugin_state.get(TASKS, {}).get(id)
            self._tape.effect("task", None, id, task, {"task_type": str(getattr(known, "task_type", "")),
                                                       "description": str(getattr(known, "description", ""))})
        super().__setitem__(id, task)

    def pop(self, id: str, *default: Any) -> Any:
        if not live() and id in self:
            self._tape.effect("task", None, id, None)
        return super().pop(id, *default)


class TapedSpending(Spending):
    """What a tool spent on requests of its own is written down."""

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self._tape = tape

    def aside(self, info: ModelInfo, usage: Usage) -> None:
        if not live():
            self._tape.effect("spent", None, msgspec.to_builtins(info), msgspec.to_builtins(usage))
        super().aside(info, usage)


class TapedPart:
    """A prompt part whose text is written down."""

    def __init__(self, part: Any, tape: Tape) -> None:
        self.name, self.layer = part.name, part.layer
        self._part, self._tape = part, tape

    async def text(self, session: Session) -> str:
        step = self._tape.steps.next("part", session, self.name)
        self._tape.write("begin", step)
        came: dict[str, Any] = {"cancelled": True}
        try:
            said: str = await self._part.text(session)
            came = {"text": said}
            return said
        except Exception as error:
            came = {"error": wire.error(error)}
            raise
        finally:
            self._tape.write("end", step, came)


# -- what a tool says of a call before the gates -------------------------------------------------------------------------------
def tap_checks(session: Session, tape: Tape) -> None:
    """Write down what tools that reach outside make of an input, as far as they change or refuse it."""
    offer = session.toolbox.offer

    def tapped(tools: Iterable[Tool], *, deferred: bool = False) -> None:
        tools = list(tools)
        for tool in tools:
            if tape.roles.tool_is_outside(tool) and "prepare_input" not in vars(tool):
                _tap(tool, tape)
        offer(tools, deferred=deferred)

    session.toolbox.offer = tapped  # type: ignore[method-assign]


def _tap(tool: Tool, tape: Tape) -> None:
    def around(work: Callable[..., Any], input: dict[str, Any], context: ToolContext) -> Any:
        step = tape.steps.next("checks", context.session, f"{work.__name__} {tool.name} {context.call_id}")
        try:
            came = work(input, context)
        except Exception as error:
            tape.write("checks", step, {"error": wire.error(error)})
            raise
        if came is not None and came != input:
            tape.write("checks", step, {"input": came})
        return came

    tool.prepare_input = partial(around, tool.prepare_input)  # type: ignore[method-assign]
    tool.validate_input = partial(around, tool.validate_input)  # type: ignore[method-assign]


# -- what extensions do before a request ---------------------------------------------------------------------------------------
class Order(Extension):
    """The last one before a request: what is posted meanwhile is told with this request, or with the next one."""

    name = "replay-order"

    def __init__(self, step: Callable[[Session], Awaitable[None]]) -> None:
        self._step = step

    async def before_request(self, session: Session) -> None:
        await self._step(session)


def tap_extensions(harness: Harness, tape: Tape) -> None:
    """Write down what the ones that look outside add before a request, and when all of them were done."""
    for extension in harness.extensions:
        if tape.roles.context_is_outside(extension):
            extension.before_request = partial(_context, tape, extension.name, extension.before_request)

    async def order(session: Session) -> None:
        tape.write("mark", tape.steps.next("order", session, ""))

    add_order(harness, order)


def add_order(harness: Harness, step: Callable[[Session], Awaitable[None]]) -> None:
    """Have that called last before each request."""
    extensions: Registry[Extension] = Registry("extensions", harness.settings, harness.options)  # the other one is being walked
    for extension in harness.extensions:
        extensions.plugin = harness.extensions.owner(extension.name) or "kernel"
        extensions(extension)
    extensions(Order(step))
    harness.extensions = extensions


async def _context(tape: Tape, name: str, work: Callable[[Session], Awaitable[None]], session: Session) -> None:
    step = tape.steps.next("context", session, name)
    tape.write("begin", step)
    before, seen = len(session.pending), dict(session.read_files)
    came: dict[str, Any] = {"cancelled": True}
    try:
        with within(" ".join(map(str, step))):
            await work(session)
        came = {"added": [b for b in session.pending[before:] if not any(b is other for other in tape.foreign)]}
        if changed := changes(seen, session.read_files):
            came["files"] = changed
    except Exception as error:
        came = {"error": wire.error(error)}
        raise
    finally:
        tape.write("end", step, came)


def changes(before: dict[str, ReadState], after: dict[str, ReadState]) -> dict[str, Any]:
    """What was seen of files since."""
    return wire.files({path: state for path, state in after.items() if before.get(path) is not state})
