"""The command hooks of one session: which handlers an event concerns.

This module is what every event of every run passes, so it imports nothing that a session without hooks does not need.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel import Answer, Event, Session
    from kernel_command_hooks.handlers import Handler
    from kernel_command_hooks.running import Running
    from kernel_command_hooks.watch import Watcher

STATE = "command-hooks"

SOURCES = "command-hooks.sources"
"""Where skills and agents put the hooks of their front matter: ``session.plugin_state[SOURCES]`` is a list of dictionaries
``{"label": "skill secure", "hooks": {...}, "plugin"?: Plugin, "skill"?: bool, "subagent"?: bool, "project"?: bool}``.
Hooks run as long as their entry stands in the list. ``skill``: ``once`` counts. ``subagent``: a ``Stop`` hook is one for
``SubagentStop``. ``project``: it lies in the project, so its hooks wait for trust. A plugin's subagent has no hooks."""

CALLBACKS = "hooks.callbacks"
"""Where callbacks of the embedding program stand, see ``callbacks.py``."""

Answers = Awaitable["list[Answer] | None"] | list["Answer"] | None


def answer(event: Event, session: Session) -> Answers:
    """What the handlers of the event answer; ``None`` at once where no handler is concerned."""
    hooks = session.plugin_state.get(STATE)
    if hooks is None:
        hooks = session.plugin_state[STATE] = Hooks(session)
    found: Answers = hooks.answer(event)
    return found


def snake(event: str) -> str:
    """``PreToolUse`` -> ``pre_tool_use``: the name of an event's hook."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in event).lstrip("_")


_EDGES = frozenset(["SessionStart", "SessionEnd"])


class Hooks:
    """Kept in ``session.plugin_state[STATE]``. ``handlers``: all that take part, by event, in configuration order."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.handlers: dict[str, list[Handler]] = {}
        self._running: Running | None = None
        self._watcher: Watcher | None = None
        # A session that lives longer than one prompt takes up edited settings (settings contract, 2).
        self._follows = not session.options.print_mode or session.options.input_format == "stream-json"
        self._stamp: tuple[Any, ...] = ()
        self._told: set[str] = set()
        self.spent: set[tuple[str, str, bytes]] = set()
        """Handlers that were to run once and did."""
        self.agents: list[Hooks] = []
        """Those of subagents, each with the sources of its own context; they end with the conversation."""
        above = session.root.plugin_state.get(STATE) if session.root is not session else None
        if above is not None:
            self.spent = above.spent
            above.agents.append(self)
        if session.harness.debug_sink is not None or session.settings.get("kernel.hooks.trace"):
            from kernel_command_hooks import trace

            trace.start(self)

    def answer(self, event: Event) -> Answers:
        """What nobody is concerned with passes in a microsecond: keep it that short."""
        self.refresh()
        name = type(event).__name__
        if name in _EDGES:
            self._watch(event)
        if name in self.handlers and (chosen := self._choose(self.handlers[name], event)):
            return self.running.answer(event, chosen)
        if self._running is not None and name in _EDGES:
            return self._running.answer(event, [])
        return None

    def _watch(self, event: Event) -> None:
        """Watch from the session's start to its end."""
        if event.event_name == "SessionStart":
            if self._follows:
                self.watcher.aim(settings=True)
        elif self._watcher is not None and event.match_value not in ("clear", "resume"):
            self._watcher.stop()

    @property
    def running(self) -> Running:
        """What runs handlers; made for the first one."""
        if self._running is None:
            from kernel_command_hooks.running import Running

            self._running = Running(self)
        return self._running

    async def close(self, patience: float) -> None:
        """What runs in the background ends with the conversation."""
        for hooks in [self, *self.agents]:
            if hooks._running is not None:
                await hooks._running.background.close(patience)

    @property
    def watcher(self) -> Watcher:
        """What watches files; made when there is something to watch."""
        if self._watcher is None:
            from kernel_command_hooks.watch import Watcher

            self._watcher = Watcher(self)
        return self._watcher

    def tell(self, text: str, guard: bool = True) -> None:
        """Announce something about the configuration, once."""
        if text not in self._told and text not in self.session.harness.announced:
            self._told.add(text)
            self.session.notice(text, guard=guard)

    def refresh(self) -> None:
        """Read the sources again where they are others than before: settings were edited, a skill came, an agent went."""
        session = self.session
        stamp = (session.settings, session.settings.trusted, session.plugins, session.root.plugin_state.get(CALLBACKS),
                 *session.plugin_state.get(SOURCES, ()))
        if stamp == self._stamp:
            return
        self._stamp = stamp
        self.handlers = {}
        if _has_sources(session):
            self._read()
        if self._watcher is not None or ("FileChanged" in self.handlers and session.agent_id is None):
            self.watcher.aim(settings=False)

    def _read(self) -> None:
        from kernel_command_hooks import config

        table = config.read(self.session)
        self.handlers = table.handlers
        for text in table.remarks:
            self.session.debug(f"command-hooks: {text}")
        for problem in table.problems:
            self.tell(problem.text, problem.guard)
        if self.handlers:
            self.running.reload()

    # -- which handlers ------------------------------------------------------------------------------------------------
    def _choose(self, handlers: list[Handler], event: Event) -> list[Handler]:
        """The handlers whose matcher and rule cover the event, without duplicates, in configuration order."""
        values = self.values(event)
        seen: set[tuple[str, str, bytes]] = set()
        chosen: list[Handler] = []
        for handler in handlers:
            if handler.identity in seen or handler.identity in self.spent or not handler.matcher(values):
                continue
            if handler.spec.rule is None or self._rule_holds(handler, event):
                seen.add(handler.identity)
                chosen.append(handler)
        return chosen

    def values(self, event: Event) -> tuple[str, ...]:
        """What matchers are tested against: the match value, and the old names of a renamed tool."""
        value = event.match_value or ""
        tool = self.session.toolbox.by_name.get(value) if type(event).matcher == "tool_name" else None
        return (value, *tool.aliases) if tool is not None else (value,)

    def _rule_holds(self, handler: Handler, event: Any) -> bool:
        try:
            return self.session.policy.matches(handler.spec.rule or "", event.tool_name, event.tool_input)
        except Exception as error:  # what cannot be evaluated lets the handler run (5.1 rule 9)
            self.tell(f"{handler.where}.if: {handler.spec.rule!r} cannot be evaluated ({error}), so the handler always runs")
            return True


def _has_sources(session: Session) -> bool:
    """Whether there is anything to read; most sessions have no hooks at all."""
    given = session.plugin_state.get(SOURCES) or session.root.plugin_state.get(CALLBACKS)
    return bool(session.settings.by_layer("hooks") or given
                or any((p.manifest is not None and p.manifest.hooks is not None)
                       or os.path.exists(os.path.join(p.root, "hooks", "hooks.json")) for p in session.plugins.ready))
