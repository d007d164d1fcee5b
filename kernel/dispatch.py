"""Fire one event: call every implementation, wait for what must be waited for, lose nothing (decision D1).

``Dispatcher.fire`` is the only caller of lifecycle hooks. The order of the outcomes is the call order: by plugin
name, ``tryfirst`` before and ``trylast`` behind. What the answers come to is decided in ``merge.py``, and does not
depend on that order except where texts are joined.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from kernel.answers import Answer
from kernel.events import ANSWERS, Event, snake
from kernel.together import side_by_side

if TYPE_CHECKING:
    import pluggy

    from kernel.session import Session

DEADLINE_S = 660.0
"""Seconds that in-process implementations get together; above the longest default of any handler (600 s)."""


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
        stamps: list[float] = []  # when each had its answer; of two rewrites the later one counts
        began = perf_counter()
        for plugin, function, names in implementations:
            try:
                value = function(event, session) if names == _BOTH else function(
                    **{name: event if name == "event" else session for name in names})
                if value is not None:
                    spoken = True
                    if inspect.isawaitable(value):
                        waiting.append((len(returned), value))
                error: BaseException | None = None
            except (Exception, SystemExit) as fault:  # a plugin's fault is an outcome, whatever it is
                value, error = None, fault
            ended = perf_counter()
            returned.append(Outcome(plugin, value, error, ended - began))
            stamps.append(ended)
            began = ended
        if waiting:
            await self._wait(waiting, returned, stamps)
        return _outcomes(event, returned, stamps) if spoken else returned  # silence and faults are outcomes as they are

    async def _wait(self, waiting: list[tuple[int, Awaitable[Any]]], returned: list[Any], stamps: list[float]) -> None:
        """Await side by side; write what each came to, and when, into its place."""
        import anyio

        async def one(place: int, value: Awaitable[Any]) -> None:
            plugin, began = returned[place][0], perf_counter()
            try:
                returned[place] = (plugin, await value, None, perf_counter() - began)
            except (Exception, SystemExit) as error:
                returned[place] = (plugin, None, error, perf_counter() - began)
            stamps[place] = perf_counter()

        for place, _ in waiting:
            late = TimeoutError(f"no answer within {self._deadline:g} s")
            returned[place] = (returned[place][0], None, late, self._deadline)
        with anyio.move_on_after(self._deadline):
            await side_by_side([one(place, value) for place, value in waiting])


def _outcomes(event: Event, returned: list[Any], stamps: list[float]) -> list[Outcome]:
    """One outcome per answer, ranked in the order in which they were there; a value of the wrong type is an error."""
    expected = ANSWERS[type(event).__name__]
    outcomes: list[Outcome] = []
    ranked: list[tuple[float, int, Answer]] = []
    for (plugin, value, error, seconds), stamp in zip(returned, stamps, strict=True):
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
                ranked.append((stamp, answer.rank, answer))
            else:
                bad = TypeError(f"answered {event.event_name} with {type(answer).__name__}, expected {expected.__name__} or None")
                outcomes.append(Outcome(plugin, None, bad, seconds))
    for rank, (_, _, answer) in enumerate(sorted(ranked, key=lambda item: item[:2]), 1):
        answer.rank = rank
    return outcomes
