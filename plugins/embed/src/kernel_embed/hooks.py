"""Functions as hooks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Generic, TypeVar, overload

from kernel import EVENTS, Event, Session, UsageError, hookimpl
from kernel_embed.answers import answer
from kernel_embed.calling import call

E = TypeVar("E", bound=Event)
_NAMES = re.compile(r"[\w\- ,|]*")


class Hook(Generic[E]):
    """A function that is called for an event. Made by ``hook``; calling it calls the function."""

    def __init__(self, function: Callable[..., Any], event: type[E], matcher: str | None) -> None:
        self.function = function
        self.event = event
        self.matcher = matcher
        self.name: str = getattr(function, "__name__", type(function).__name__)
        self.__doc__ = function.__doc__
        self._names, self._pattern = _read(self.name, event, matcher)
        self._takes = _arguments(self.name, function)

    def __call__(self, event: E, *session: Session) -> Any:
        return self.function(event, *session)

    def __repr__(self) -> str:
        return f"<hook {self.name} on {self.event.__name__}>"

    def matches(self, event: Event, session: Session | None = None) -> bool:
        """Whether the matcher covers the event. A tool is known by its old names, too."""
        value = event.match_value
        if value is None or (self._names is None and self._pattern is None):
            return True
        found = session.toolbox.by_name.get(value) if session is not None and event.matcher == "tool_name" else None
        values = [value] if found is None else [value, found.name, *found.aliases]
        if self._names is not None:
            return not self._names.isdisjoint(values)
        return any(self._pattern is not None and self._pattern.search(v) for v in values)

    def plugin(self) -> Any:
        """The hook as the kernel takes it: an object with one implementation."""
        async def implementation(event: Any, session: Any) -> Any:
            if not self.matches(event, session):
                return None
            return answer(event, await call(self.function, *(event, session)[:self._takes]))

        return SimpleNamespace(**{_snake(self.event.__name__): hookimpl(implementation)})


@overload
def hook(event: type[E], *, matcher: str | None = None,
         ) -> Callable[[Callable[[E], Any] | Callable[[E, Session], Any]], Hook[E]]: ...
@overload
def hook(event: str, *, matcher: str | None = None) -> Callable[[Callable[..., Any]], Hook[Any]]: ...


def hook(event: type[Event] | str, *, matcher: str | None = None) -> Any:
    """A function as a hook: ``@hook(PreToolUse, matcher="Bash")``, or ``@hook("PreToolUse", ...)``.

    The function gets the event, and the ``session`` where it takes a second argument. It returns ``deny()``, ``allow()``,
    ``add_context()``, the event's own result model, a list of these, or ``None``. ``def`` or ``async def``; a ``def`` runs in a
    thread. A gate (``PreToolUse``, ``PermissionRequest``, ``UserPromptSubmit`` ...) that raises refuses.

    :param matcher: names (``"Edit|Write"``), or else a regular expression that is searched for (``"mcp__.*"``). What it is held
        against is the event's own: the tool's name, the source of a session ... Without one every such event counts.
    :raises UsageError: there is no such event, or the matcher means nothing.
    """
    kind = EVENTS.get(event) if isinstance(event, str) else event
    if not (isinstance(kind, type) and issubclass(kind, Event) and kind.__name__ in EVENTS):
        raise UsageError(f"there is no event {event!r}{_nearest(event)}", context="@hook")

    def made(function: Callable[..., Any]) -> Hook[Any]:
        return Hook(function, kind, matcher)

    return made


def _read(name: str, event: type[Event], matcher: str | None) -> tuple[frozenset[str] | None, re.Pattern[str] | None]:
    if matcher is None or matcher in ("", "*"):
        return None, None
    if event.matcher is None:
        raise UsageError(f"{event.__name__} has nothing that a matcher could be held against", context=f"hook {name}")
    if _NAMES.fullmatch(matcher):
        names = frozenset(part.strip() for part in re.split(r"[,|]", matcher) if part.strip())
        if names:
            return names, None
        raise UsageError(f"the matcher {matcher!r} holds separators only", context=f"hook {name}")
    try:
        return None, re.compile(matcher)
    except re.error as error:
        raise UsageError(f"the matcher {matcher!r} is no regular expression ({error})", context=f"hook {name}") from None


def _arguments(name: str, function: Callable[..., Any]) -> int:
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    takes = [p for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in takes if p.default is p.empty]
    if not takes or len(needed) > 2:
        raise UsageError("takes the event, or the event and the session", context=f"hook {name}")
    return 2 if len(needed) == 2 else 1


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _nearest(event: object) -> str:
    from difflib import get_close_matches

    near = get_close_matches(str(event), EVENTS, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
