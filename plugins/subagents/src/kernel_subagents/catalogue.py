"""Which agents there are: six sources, the highest counts (subagents contract, 1.1)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from kernel_subagents.builtin import FORK, built_in, fork_mode
from kernel_subagents.definition import NOT_OF_PLUGINS, Definition, Source, from_file, from_json

if TYPE_CHECKING:
    from kernel import Component, Session

_ORDER: tuple[Source, ...] = ("managed", "flag", "project", "added", "user", "plugin", "built-in")


class Catalogue:
    """The agents of a conversation by name. Files are listed anew by ``refresh`` and read only when they changed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._read: dict[str, tuple[tuple[int, int, int], Definition | str]] = {}
        self._warned: set[str] = set()
        self.by_name: dict[str, Definition] = {}

    def refresh(self) -> None:
        """Look at all sources again."""
        found: dict[Source, list[Definition]] = {source: [] for source in _ORDER}
        for component in self._components():
            made = self._definition(component)
            if isinstance(made, str):
                self._session.debug(f"subagents: {component.path} is skipped: {made}")
            else:
                for problem in made.problems:
                    self._warn(f"agent {component.path}, {problem}", guard=problem.startswith("hooks:"))
                found[made.source].append(made)
        found["flag"] = self._given()
        found["built-in"] = built_in(self._session.options.print_mode)
        self.by_name = {}
        for source in _ORDER:
            for made in found[source]:
                other = self.by_name.setdefault(made.name, made)
                if other is not made and other.source == source and _tree(other) == _tree(made):
                    self._warn(f"agent {made.name}: {made.path} is left out, {other.path} has the same name")
        if fork_mode(self._session.options.print_mode):
            self.by_name.setdefault("fork", FORK)

    def get(self, name: str) -> Definition | None:
        """By name; upper and lower case and separators do not matter (2)."""
        found = self.by_name.get(name)
        if found is None:
            wanted = _plain(name)
            found = next((d for n, d in self.by_name.items() if _plain(n) == wanted), None)
        return found

    # -- sources ---------------------------------------------------------------------------------------------------------
    def _components(self) -> list[Component]:
        from kernel import find_components

        found = find_components(self._session, "agents")
        for fault in found.faults:
            self._warn(f"agents: {fault}")
            if fault.plugin:
                self._plugin_error(fault.plugin, str(fault))
        return found.items

    def _plugin_error(self, plugin: str, message: str) -> None:
        errors = getattr(self._session, "plugin_errors", None)
        entry = {"plugin": plugin, "type": "component-load-failed", "message": message}
        if errors is not None and entry not in errors:
            errors.append(entry)

    def _definition(self, component: Component) -> Definition | str:
        from kernel import read_frontmatter

        key = f"{component.plugin.name if component.plugin else ''}:{component.path}"
        known = self._read.get(key)
        if known is not None and known[0] == component.stamp:
            return known[1]
        parsed = read_frontmatter(component.path)
        source: Source = component.scope
        made: Definition | str
        if not parsed.readable:
            made = parsed.problem
            self._warn(f"agent {component.path} {parsed.problem}")
        else:
            made = from_file(parsed, component.name, source, path=component.path, plugin=component.plugin)
            if component.plugin is not None and parsed.problem:
                self._plugin_error(component.plugin.name, f"{component.path}: {parsed.problem}")
            if component.plugin is not None and (idle := [name for name in NOT_OF_PLUGINS if parsed.fields.get(name)]):
                self._session.debug(f"agent {component.path}: {', '.join(idle)} of a plugin's agent do not count; an agent of "
                                    "the project or of the user may have them")
        self._read[key] = component.stamp, made
        return made

    def _given(self) -> list[Definition]:
        """Those of ``--agents`` and of the program that embeds the session."""
        given: Any = self._session.options.extra.get("agents")
        if isinstance(given, str):
            try:
                given = json.loads(given)
            except (ValueError, RecursionError) as error:
                self._warn(f"--agents: is no JSON ({error}), so none of them is there")
                return []
        if given is None:
            return []
        if not isinstance(given, dict):
            self._warn("--agents: must be an object of name and definition")
            return []
        found = []
        for name, entry in given.items():
            made = from_json(str(name), entry)
            if isinstance(made, str):
                self._warn(f"--agents: {made}; this agent is not there")
            else:
                for problem in made.problems:
                    self._warn(f"--agents: {name}.{problem}")
                found.append(made)
        return found

    def _warn(self, text: str, guard: bool = False) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._session.notice(text, guard=guard)


def _tree(definition: Definition) -> str:
    """What two equal names must share to be told of: the folder tree that they lie in."""
    path = definition.path.replace("\\", "/")
    head, found, _ = path.rpartition("/agents/")
    return head if found else path


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()
