"""Whose work is done again in a replay, and whose comes from the recording.

What a plugin does inside the process is done again: it is what a replay tests. What reaches outside is not: a tool of a plugin
that states ``processes`` or ``network`` among its capabilities, a hook of such a plugin that is waited for, the plugin that runs
configured hooks. A tool that no plugin with a manifest brings counts as outside.
"""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from kernel import Extension

if TYPE_CHECKING:
    from kernel import Event, Harness, Outcome, Plugin, Session, Tool

AGAIN = frozenset({"Skill"})
"""Tools that change the conversation, whatever their plugin states; what they run outside are steps of their own."""
Step = tuple[str, str, str, int]


def snake(event: str) -> str:
    """``PreToolUse`` -> ``pre_tool_use``: the name of an event's hook."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in event).lstrip("_")


class Roles:
    """:param harness: its plugins are asked."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self._outside: dict[tuple[str, str], bool] = {}

    def plugin_of(self, thing: object) -> Plugin | None:
        """The plugin whose package the thing's class comes from."""
        package = type(thing).__module__.partition(".")[0]
        return next((p for p in self._harness.plugins if (p.module or "").partition(".")[0] == package), None)

    def tool_is_outside(self, tool: Tool) -> bool:
        if tool.name in AGAIN or tool.internal:
            return False
        plugin = self.plugin_of(tool)
        return plugin is None or reaches(plugin)

    def context_is_outside(self, extension: Extension) -> bool:
        """Whether what it adds before a request is kept: it stands beside tools that reach outside, and looks where they do."""
        plugin = self.plugin_of(extension)
        if plugin is None or plugin.manifest is None or type(extension).before_request is Extension.before_request:
            return False
        tools = plugin.manifest.kernel.provides.get("tools") or []
        return bool(tools) and reaches(plugin) and AGAIN.isdisjoint(tools)

    def hook_is_outside(self, plugin: str, event: Event) -> bool:
        """Whether what that plugin answers to the event is kept, and it is not asked again."""
        key = (plugin, event.event_name)
        if key not in self._outside:
            self._outside[key] = self._hook(plugin, snake(event.event_name))
        return self._outside[key]

    def _hook(self, name: str, hook: str) -> bool:
        plugin = self._harness.plugins.get(name)
        if plugin is None or plugin.manifest is None or not reaches(plugin):
            return False
        if "*" in plugin.manifest.kernel.implements or "hooks" in plugin.manifest.kernel.enforces:
            return True
        try:
            return inspect.iscoroutinefunction(getattr(plugin.load(), hook, None))
        except Exception:  # said where it is called
            return False

    async def fire(self, session: Session, event: Event, keep: Any) -> list[Outcome]:
        """Fire the event at the plugins that ``keep(name)`` says."""
        dispatcher = session.harness.dispatcher
        found: list[Outcome]
        found = await type(dispatcher)(_Some(self._harness.plugins.manager, keep)).fire(event, session)  # type: ignore[arg-type]
        return found


def reaches(plugin: Plugin) -> bool:
    """Whether it states processes or the network among its capabilities."""
    stated = plugin.manifest.kernel.capabilities if plugin.manifest else {}
    return bool(stated.get("processes") or stated.get("network"))


class _Some:
    """A plugin manager that shows the hooks of some plugins alone."""

    def __init__(self, manager: Any, keep: Any) -> None:
        self._manager, self._keep = manager, keep

    @property
    def hook(self) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        caller = getattr(self._manager.hook, name)
        return SimpleNamespace(get_hookimpls=lambda: [i for i in caller.get_hookimpls() if self._keep(i.plugin_name)])


def ranked(outcomes: list[Outcome], order: list[str]) -> list[Outcome]:
    """Answers of two groups as one: in the order of the plugins, ranked by when they were there."""
    answers = sorted((o for o in outcomes if o.answer is not None), key=lambda o: (o.seconds, o.answer.rank if o.answer else 0))
    for rank, outcome in enumerate(answers, 1):
        assert outcome.answer is not None
        outcome.answer.rank = rank
    return sorted(outcomes, key=lambda o: order.index(o.plugin))


class Steps:
    """Names for steps: what kind, of which agent, what it is about, and which one of those it is."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], int] = {}

    def next(self, kind: str, session: Session | None, name: str) -> Step:
        agent = (session.agent_id or "") if session is not None else ""
        key = (kind, agent, name)
        self._counts[key] = self._counts.get(key, 0) + 1
        return (*key, self._counts[key])

    def of_event(self, session: Session, event: Event) -> Step:
        call = getattr(event, "tool_use_id", None)
        return self.next("hooks", session, f"{event.event_name} {call}" if call else event.event_name)


def said(step: Step) -> str:
    """A step in words."""
    kind, agent, name, number = step
    whose = f" of agent {agent}" if agent else ""
    what = {"model": f"model request {number}", "hooks": f"hooks of {name}", "tool": f"tool run {name}",
            "decision": f"permission decision on {name}", "approval": f"question about {name}", "checks": f"checks of {name}",
            "sleep": f"wait {number} in {name}", "part": f"prompt part {name}", "context": f"context of extension {name}",
            "order": f"preparation of request {number}",
            "input": f"input {name}", "out": f"output {number}", "entry": f"transcript entry {number}"}.get(kind, kind)
    again = f" ({number})" if number > 1 and kind in ("hooks", "tool", "decision", "approval", "checks", "part") else ""
    return f"{what}{again}{whose}"


def implementations(session: Session, event: Event) -> list[str]:
    """The plugins that implement the event, in call order."""
    caller: Any = getattr(session.plugins.manager.hook, snake(event.event_name))
    return [i.plugin_name for i in reversed(caller.get_hookimpls())]
