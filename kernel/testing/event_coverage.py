"""Which of the events that a plugin answers were fired while its tests ran.

A plugin says what it answers: ``metadata.kernel.implements`` in its manifest for Python, ``hooks/hooks.json`` (or the
manifest's ``hooks``) for commands. Counted is what the real dispatcher fired with the plugin taking part, and what
``run_hook`` handed to a command. A test that calls the hook function itself proves nothing about the manifest, and
is not counted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from kernel.dispatch import Dispatcher, Outcome
from kernel.events import EVENTS, Event, snake
from kernel.manifest import read
from kernel.session import Session

COMMANDS = "command-hooks"
"""The plugin that runs hooks.json; what it was handed counts for the commands of every plugin."""

_HOOKS = {snake(name): name for name in EVENTS}


class Recorder(Struct):
    """``fired``: plugin -> event -> how often."""

    fired: dict[str, dict[str, int]] = field(default_factory=dict)

    def note(self, plugin: str, event: str, times: int = 1) -> None:
        events = self.fired.setdefault(plugin, {})
        events[event] = events.get(event, 0) + times

    def add(self, other: dict[str, dict[str, int]]) -> None:
        for plugin, events in other.items():
            for event, times in events.items():
                self.note(plugin, event, times)


_active: list[Recorder] = []  # one, while a test run asks for coverage; the pytest plugin puts it there
_fire = Dispatcher.fire


async def _counting(self: Dispatcher, event: Event, session: Session | None = None) -> list[Outcome]:
    for plugin, _, _ in self._implementations(type(event)):
        note(plugin, event.event_name)
    return await _fire(self, event, session)


def start() -> Recorder:
    """Count from now on, in every harness of this process. Without it the dispatcher is untouched."""
    _active[:] = [Recorder()]
    Dispatcher.fire = _counting  # type: ignore[method-assign]  # a reload makes a new dispatcher, so the class it is
    return _active[0]


def stop() -> None:
    _active.clear()
    Dispatcher.fire = _fire  # type: ignore[method-assign]


def note(plugin: str, event: str) -> None:
    if _active:
        _active[0].note(plugin, event)


class Coverage(Struct):
    """``answered``: the events that the plugin says it answers, with how often each was fired."""

    plugin: str
    answered: dict[str, int]

    @property
    def missing(self) -> list[str]:
        return [event for event, times in self.answered.items() if not times]

    def lines(self) -> list[str]:
        """The report, for people."""
        done = len(self.answered) - len(self.missing)
        width = max(map(len, self.answered), default=0)
        return [f"event coverage of {self.plugin}: {done} of {len(self.answered)}",
                *(f"  {event:<{width}}  " + (f"fired {times} time{'s' if times > 1 else ''}" if times else "never fired")
                  for event, times in self.answered.items())]


def measure(root: Path, recorder: Recorder) -> Coverage:
    """Compare what the plugin in that folder says it answers with what was fired.

    :raises ValueError: the folder holds no plugin whose manifest can be read.
    """
    got = read(root)
    if got.manifest is None:
        raise ValueError("; ".join(got.errors))
    mine = recorder.fired.get(got.manifest.name, {})
    commands = recorder.fired.get(COMMANDS, {})
    python = [_HOOKS[hook] for hook in got.manifest.kernel.implements if hook in _HOOKS]
    answered = {name: mine.get(name, 0) for name in python}
    for name in _in_hooks_files(root, got.manifest.hooks):
        answered[name] = answered.get(name, 0) + commands.get(name, 0)
    return Coverage(got.manifest.name, answered)


def _in_hooks_files(root: Path, declared: Any) -> list[str]:
    """Events of ``hooks/hooks.json`` and of what the manifest names: a path, an object, or a list of both."""
    sources: list[Any] = [root / "hooks" / "hooks.json", *(declared if isinstance(declared, list) else [declared])]
    found: list[str] = []
    for source in sources:
        if isinstance(source, str):
            source = root / source
        if isinstance(source, Path):
            try:
                source = json.loads(source.read_text("utf-8"))
            except (OSError, ValueError):  # the linter's business
                continue
        if isinstance(source, dict):
            events = source.get("hooks", source)
            found += [name for name in events if name in EVENTS] if isinstance(events, dict) else []
    return list(dict.fromkeys(found))
