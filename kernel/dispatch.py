"""Fire one event: call every implementation, wait for what must be waited for, lose nothing (decision D1).

``Dispatcher.fire`` is the only caller of lifecycle hooks. The order of the outcomes is the call order: by plugin
name, ``tryfirst`` before and ``trylast`` behind. What the answers come to is decided in ``merge.py``, and does not
depend on that order except where texts are joined.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kernel.answers import Answer
from kernel.events import ANSWERS, Event, snake

if TYPE_CHECKING:
    import pluggy

    from kernel.session import Session

DEADLINE_S = 660.0
"""Seconds that in-process implementations get together; above the longest default of any handler (600 s)."""


T = TypeVar("T")
_BOTH = ("event", "session")


class Outcome(NamedTuple):
    """What one implementation did: one answer, or the error that it ended with, or neither."""

    plugin: str
    answer: Answer | None
    error: BaseException | None
    seconds: float


class Dispatcher:
    """Calls lifecycle hooks.

    :param deadline: seconds for all implementations of one firing together; only ``async def`` ones can be ended.
    """

    def __init__(self, manager: pluggy.PluginManager, deadline: float = DEADLINE_S) -> None:
        self._manager = manager
        self._deadline = deadline
        self._table: dict[type[Event], list[tuple[str, Callable[..., Any], tuple[str, ...]]]] = {}

    def refresh(self) -> None:
        """Forget the table; call it after plugins were registered or removed."""
        self._table.clear()

    def listens(self, event: type[Event]) -> bool:
        """Whether anybody implements the event; lets a caller skip building it."""
        return bool(self._implementations(event))

    def _implementations(self, event: type[Event]) -> list[tuple[str, Callable[..., Any], tuple[str, ...]]]:
        found = self._table.get(event)
        if found is None:
            caller = getattr(self._manager.hook, snake(event.__name__))
            # pluggy keeps the list in reverse call order.
            found = [(i.plugin_name, i.function, tuple(i.argnames)) for i in reversed(caller.get_hookimpls())]
            self._table[event] = found
        return found

    async def fire(self, event: Event, session: Session | None = None) -> list[Outcome]:
        """Call all implementations and return their outcomes in call order. Never raises for a plugin's fault."""
        implementations = self._implementations(type(event))
        if not implementations:
            return []
        returned: list[Any] = []
        waiting: list[tuple[int, Awaitable[Any]]] = []
        spoken = False
        began = perf_counter()
        for plugin, function, names in implementations:
            try:
                if names == _BOTH:  # the common case, without a dictionary
                    value = function(event, session)
                else:
                    given = {"event": event, "session": session}
                    value = function(**{name: given[name] for name in names})
                if value is not None:
                    spoken = True
                    if inspect.isawaitable(value):
                        waiting.append((len(returned), value))
                error: BaseException | None = None
            except (Exception, SystemExit) as fault:  # a plugin's fault is an outcome, whatever it is
                value, error = None, fault
            ended = perf_counter()
            returned.append(Outcome(plugin, value, error, ended - began))
            began = ended
        if waiting:
            await self._wait(waiting, returned)
        return _outcomes(event, returned) if spoken else returned  # silence and faults are outcomes as they are

    async def _wait(self, waiting: list[tuple[int, Awaitable[Any]]], returned: list[Any]) -> None:
        """Await side by side; write what each came to into its place."""
        import anyio

        async def one(place: int, value: Awaitable[Any]) -> None:
            plugin, began = returned[place][0], perf_counter()
            try:
                returned[place] = (plugin, await value, None, perf_counter() - began)
            except (Exception, SystemExit) as error:
                returned[place] = (plugin, None, error, perf_counter() - began)

        for place, _ in waiting:
            late = TimeoutError(f"no answer within {self._deadline:g} s")
            returned[place] = (returned[place][0], None, late, self._deadline)
        with anyio.move_on_after(self._deadline):
            await side_by_side([one(place, value) for place, value in waiting])


async def side_by_side(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines side by side; their results in order. The first exception passes when all have ended.

    Plain asyncio tasks cost a third of anyio's task group here. On cancellation they are cancelled once and waited for behind a
    shield, so that work that ends its processes on the way out is not disturbed while it does.
    """
    if len(work) < 2:
        return [await one for one in work]
    import asyncio

    import anyio

    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait(tasks)
        raise
    return [task.result() for task in tasks]


def _outcomes(event: Event, returned: list[Any]) -> list[Outcome]:
    """One outcome per answer; a value of the wrong type is an error that names what was expected."""
    expected = ANSWERS[type(event).__name__]
    outcomes: list[Outcome] = []
    for plugin, value, error, seconds in returned:
        if error is not None or value is None:
            outcomes.append(Outcome(plugin, None, error, seconds))
            continue
        for answer in value if isinstance(value, list) else (value,):
            if isinstance(answer, expected):
                try:  # in Python nobody checked the fields yet
                    expected.from_wire(answer.to_wire())
                except (ValueError, TypeError) as fault:
                    nonsense = ValueError(f"answered {event.event_name} with nonsense: {fault}")
                    outcomes.append(Outcome(plugin, None, nonsense, seconds))
                    continue
                if not answer.source:
                    answer.source = plugin
                outcomes.append(Outcome(plugin, answer, None, seconds))
            else:
                wrong = TypeError(f"answered {event.event_name} with {type(answer).__name__}, "
                                  f"expected {expected.__name__} or None")
                outcomes.append(Outcome(plugin, None, wrong, seconds))
    return outcomes
