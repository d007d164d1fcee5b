"""Which handlers take part in a session: all sources, in configuration order, under the policy (hooks contract, 2 and 3)."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from kernel import EVENTS
from kernel_command_hooks import plugin_files
from kernel_command_hooks.facts import NEEDS_RESULT, Facts, row
from kernel_command_hooks.handlers import Command, Group, Handler, Home, Scope, Sdk, read_callback, read_groups, read_spec
from kernel_command_hooks.hooks import CALLBACKS, SOURCES
from kernel_command_hooks.match import EVERYTHING, Matcher

if TYPE_CHECKING:
    from kernel import Plugin, Session


class Problem(Struct, frozen=True):
    """Something in the configuration that does not work. ``guard``: it might have refused something."""

    text: str
    guard: bool = True


class Table(Struct):
    """What the sources came to."""

    handlers: dict[str, list[Handler]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def warn(self, text: str, guard: bool = True) -> None:
        self.problems.append(Problem(text, guard))


def read(session: Session) -> Table:
    """All handlers of the session by event. Reads files of plugins; never raises for what stands in them."""
    table = Table()
    admit = _Policy(session)
    for layer, hooks in session.settings.by_layer("hooks"):
        if reason := admit.refuses(layer.scope):
            table.remarks.append(f"{layer.path}: its hooks are left out: {reason}")
        else:
            for event, facts, where, groups in _events(table, hooks, layer.path, guard=True):
                _add(table, event, facts, where, groups, layer.scope)
    for plugin in session.plugins.ready:
        _plugin(table, admit, plugin, session)
    for entry in session.plugin_state.get(SOURCES, ()):
        _entry(table, admit, entry, session)
    _callbacks(table, admit, session)
    return table


OWN = ("project", "local")
"""Scopes whose files come with the project."""


# -- policy ------------------------------------------------------------------------------------------------------------
class _Policy:
    """Who may contribute hooks (sections 3.2, 3.3 and 16)."""

    def __init__(self, session: Session) -> None:
        self._session = session
        settings = session.settings
        switches = [(layer.scope, value) for layer, value in settings.by_layer("disableAllHooks") if isinstance(value, bool)]
        self._off = bool(switches and switches[0][1])
        self._off_for_all = self._off and switches[0][0] == "managed"
        # A clone must not switch off a person's guards: until it is trusted its switch is for its own hooks.
        self._off_own = self._off and switches[0][0] in OWN and not settings.trusted
        if self._off_own:
            session.harness.announce("disableAllHooks of this project switches off the project's own hooks only: "
                                     "this workspace has not been trusted")
        self._managed_only = settings.managed("allowManagedHooksOnly") is True
        strict = settings.managed("strictPluginOnlyCustomization")
        self._plugins_only = "hooks" in strict if isinstance(strict, list) else bool(strict)
        enabled = settings.managed("enabledPlugins")
        self._forced = {i for i, on in enabled.items() if on is True} if isinstance(enabled, dict) else set()
        self._bare = bool(session.options.extra.get("bare"))
        self._safe = bool(session.options.extra.get("safe_mode"))
        # An interactive session waits for the trust dialog; a print run counts as trusted (section 16, rules 1 and 2).
        self._untrusted = not session.options.print_mode and not settings.trusted

    def refuses(self, scope: Scope, plugin: Plugin | None = None) -> str:
        """Why a source does not count; empty where it does."""
        forced = plugin is not None and plugin.id in self._forced
        if self._off_for_all:
            return "managed settings set disableAllHooks"
        if self._untrusted and scope not in ("plugin", "session", "sdk"):
            return "the folder is not trusted yet"
        if scope == "managed":
            return ""
        if self._safe:
            return "the run is in safe mode"
        if scope == "sdk":
            return ""  # a project file must not switch off the gate of the program that embeds the session
        if self._off and not forced and (scope in OWN or not self._off_own):
            return "disableAllHooks is set"
        if self._managed_only and not forced:
            return "managed settings set allowManagedHooksOnly"
        if self._plugins_only and scope in ("user", "project", "local"):
            return "managed settings set strictPluginOnlyCustomization"
        if self._bare and (scope in ("user", "project", "local") or (plugin is not None and plugin.source != "inline")):
            return "the run is bare"
        return ""

    def refuses_entry(self, entry: dict[str, Any]) -> str:
        """Why the front matter of a skill or an agent does not count; empty where it does."""
        if not entry.get("subagent"):
            return "the folder is not trusted yet" if entry.get("project") and self._untrusted else ""
        if entry.get("plugin") is not None:
            return "hooks of a subagent that a plugin brings do not run"
        if entry.get("project") and not folder_is_trusted(self._session):
            return (f"hooks of a project's subagent run only after {self._session.project_root} itself was trusted, in an "
                    "interactive session that is started there")
        return ""


# -- sources -----------------------------------------------------------------------------------------------------------
def _plugin(table: Table, admit: _Policy, plugin: Plugin, session: Session) -> None:
    found = plugin_files.find(plugin)
    if not (found.maps or found.faults or found.remarks):
        return
    if reason := admit.refuses("plugin", plugin):
        table.remarks.append(f"plugin {plugin.name}: its hooks are left out: {reason}")
        return
    for text in found.faults:
        table.warn(f"plugin {plugin.name}: {text}")
    for text in found.remarks:
        table.remarks.append(f"plugin {plugin.name}: {text}")
        if text not in plugin.warnings:
            plugin.warnings.append(text)
    home = plugin_files.home(plugin, session)
    for where, hooks in found.maps:
        try:
            _whole_map(table, hooks, f"plugin {plugin.name}: {where}", "plugin", home)
        except ValueError as error:
            table.warn(f"{error}; no hook of this file runs")


def _entry(table: Table, admit: _Policy, entry: dict[str, Any], session: Session) -> None:
    label = str(entry.get("label", "session"))
    if reason := admit.refuses("session") or admit.refuses_entry(entry):
        table.remarks.append(f"{label}: its hooks are left out: {reason}")
        return
    plugin = entry.get("plugin")
    home = plugin_files.home(plugin, session) if plugin is not None else None
    hooks = entry.get("hooks")
    if not isinstance(hooks, dict):
        table.warn(f"{label}, hooks: must be an object of event names, so its hooks do not run")
        return
    if entry.get("subagent") and "Stop" in hooks:
        hooks = {**hooks, "SubagentStop": [*hooks.get("SubagentStop", ()), *hooks["Stop"]]}
        del hooks["Stop"]
    try:
        _whole_map(table, hooks, label, "session", home, skill=bool(entry.get("skill")))
    except (ValueError, TypeError) as error:
        table.warn(f"{error}; its hooks do not run")


def _callbacks(table: Table, admit: _Policy, session: Session) -> None:
    found = session.root.plugin_state.get(CALLBACKS)
    if not found:
        return
    if reason := admit.refuses("sdk"):
        table.remarks.append(f"callbacks of the program are left out: {reason}")
        return
    for event, entries in found.items():
        facts = row(event) if event in EVENTS else None
        if facts is None:
            table.warn(f"callbacks of the program, {event}: there is no such event, so they are never called")
            continue
        for n, entry in enumerate(entries):
            where = f"callbacks of the program, {event}[{n}]"
            try:
                given = read_callback(entry, where)
            except ValueError as error:
                table.warn(f"{error}; this callback is never called", facts.refuses)
                continue
            label = f"[SDK] {given.label or f'callback {n}'}"
            spec = Sdk(callback=given.callback, timeout=given.timeout, place=where)
            matcher = _matcher(table, event, facts, given.matcher, where)
            table.handlers.setdefault(event, []).append(
                Handler(event=event, spec=spec, scope="sdk", where=where, matcher=matcher, label=label))


def _whole_map(table: Table, hooks: dict[str, Any], where: str, scope: Scope, home: Home | None, *, skill: bool = False) -> None:
    """An event map that counts as a whole or not at all.

    :raises ValueError: some group or handler has the wrong shape.
    """
    events = list(_events(table, hooks, where, guard=False))
    for _, _, place, groups in events:
        for n, group in enumerate(groups):
            for m, handler in enumerate(group.hooks):
                read_spec(handler, f"{place}[{n}].hooks[{m}]")
    for event, facts, place, groups in events:
        _add(table, event, facts, place, groups, scope, home, skill)


def _events(table: Table, hooks: dict[str, Any], where: str, *, guard: bool) -> Iterator[tuple[str, Facts, str, list[Group]]]:
    """The known events of a map with their groups; unknown names are announced and skipped."""
    for event, groups in hooks.items():
        facts = row(event) if event in EVENTS else None
        if facts is None:
            near = get_close_matches(event, EVENTS, n=1, cutoff=0.7) or [e for e in EVENTS if e.lower() == event.lower()]
            hint = f"; did you mean {near[0]}?" if near else ""
            table.warn(f"{where}, hooks.{event}: there is no such event, so its hooks do not run{hint}", guard)
        else:
            place = f"{where}, hooks.{event}"
            yield event, facts, place, read_groups(groups, place)


# -- handlers ----------------------------------------------------------------------------------------------------------
def _add(table: Table, event: str, facts: Facts, where: str, groups: list[Group], scope: Scope, home: Home | None = None,
         skill: bool = False) -> None:
    mine = table.handlers.setdefault(event, [])
    for n, group in enumerate(groups):
        matcher = _matcher(table, event, facts, group.matcher, f"{where}[{n}]")
        for m, value in enumerate(group.hooks):
            handler = _handler(table, event, facts, f"{where}[{n}].hooks[{m}]", value, scope, home)
            if handler is not None:
                handler.matcher = matcher
                handler.spec.once = handler.spec.once and skill
                mine.append(handler)
    if not mine:
        del table.handlers[event]


def _matcher(table: Table, event: str, facts: Facts, text: str | None, where: str) -> Matcher:
    if EVENTS[event].matcher is None:  # a matcher is ignored there, whatever it holds
        return EVERYTHING
    matcher = Matcher(text, facts.narrow)
    if matcher.problem:
        remark = f"{where}.matcher: {matcher.text!r} matches nothing: {matcher.problem}"
        if facts.refuses:
            table.warn(remark)
        table.remarks.append(remark)
    return matcher


def _handler(table: Table, event: str, facts: Facts, where: str, value: Any, scope: Scope, home: Home | None) -> Handler | None:
    """A handler, or ``None`` with the reason announced. One whose failure has to refuse is kept and marked broken."""
    try:
        spec = read_spec(value, where)
    except ValueError as error:
        if not (isinstance(value, dict) and value.get("onFailure") == "block"):
            table.warn(f"{error}; this handler never runs", facts.refuses)
            return None
        table.warn(f"{error}; this handler cannot run and refuses, as its onFailure says")
        stand_in = Command(command=str(value.get("command") or value.get("type")), on_failure="block")
        return Handler(event=event, spec=stand_in, scope=scope, where=where, home=home, broken=str(error))
    if spec.type not in facts.types:
        table.warn(f"{where}: {event} takes handlers of type {', '.join(facts.types)}, not {spec.type}; this one never runs")
        return None
    if spec.rule is not None and not facts.rules:
        table.warn(f"{where}.if: {event} is no tool event, so a handler with 'if' never runs", facts.refuses)
        return None
    if isinstance(spec, Command):
        if (spec.run_async or spec.rewake) and event in NEEDS_RESULT:
            table.warn(f"{where}.async: the result of {event} is needed, so the handler is waited for", guard=False)
            spec.run_async = spec.rewake = False
        if (spec.run_async or spec.rewake) and spec.on_failure is not None:
            table.warn(f"{where}.onFailure: nobody waits for an async handler, so its failure cannot refuse anything")
        if spec.args is not None and "/" not in spec.command and len(spec.command.split()) > 1:
            table.warn(f"{where}.command: {spec.command!r} is one program name with white space in it, because 'args' is set; "
                       "put the arguments into 'args'", facts.refuses)
    return Handler(event=event, spec=spec, scope=scope, where=where, home=home)


def folder_is_trusted(session: Session) -> bool:
    """Whether exactly this folder was trusted; neither a folder above it nor a print run counts (section 16, rule 3)."""
    import os
    from pathlib import Path

    import msgspec

    home = session.settings.config_dir if os.environ.get("CLAUDE_CONFIG_DIR") else Path.home()
    try:
        entry = msgspec.json.decode((home / ".claude.json").read_bytes())["projects"][session.project_root]
    except (OSError, msgspec.DecodeError, UnicodeError, RecursionError, LookupError, TypeError):
        return False
    return isinstance(entry, dict) and entry.get("hasTrustDialogAccepted") is True
