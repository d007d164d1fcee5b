"""Hooks as the rules see them: a map of events, its groups, its handlers, from a file, a manifest, frontmatter or settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from kernel_linter.rule import Diagnostic, Fix, FixClass
from kernel_linter.source import File, JsonFile, Pointer
from kernel_linter.tables import EVENTS, TOOL_EVENTS

if TYPE_CHECKING:
    from kernel_linter.bundle import Plugin

Home = Literal["file", "manifest", "skill", "agent", "settings"]
_EXACT = re.compile(r"^[A-Za-z0-9_\- ,|]*$")
_NARROW = re.compile(r"^[A-Za-z0-9_|]*$")


class HookMap:
    """One map ``{Event: [groups]}``. ``base`` is where it stands in its file."""

    def __init__(self, file: File, data: Any, home: Home, base: tuple[Pointer, ...] = (), plugin: Plugin | None = None) -> None:
        self.file, self.data, self.home, self.base, self.plugin = file, data, home, base, plugin

    def at(self, message: str, *pointer: Pointer, **more: Any) -> Diagnostic:
        return self.file.at(message, *self.base, *pointer, **more)

    @property
    def events(self) -> list[tuple[str, Any]]:
        return list(self.data.items()) if isinstance(self.data, dict) else []

    def groups(self) -> Iterator[Group]:
        """The groups that have the right shape."""
        for event, groups in self.events:
            if isinstance(groups, list):
                for index, group in enumerate(groups):
                    if isinstance(group, dict):
                        yield Group(self, event, index, group)

    def handlers(self) -> Iterator[Handler]:
        for group in self.groups():
            yield from group.handlers()


class Group:
    def __init__(self, hooks: HookMap, event: str, index: int, data: dict[str, Any]) -> None:
        self.hooks, self.event, self.index, self.data, self.plugin = hooks, event, index, data, hooks.plugin

    def at(self, message: str, *pointer: Pointer, **more: Any) -> Diagnostic:
        return self.hooks.at(message, self.event, self.index, *pointer, **more)

    def handlers(self) -> Iterator[Handler]:
        hooks = self.data.get("hooks")
        if isinstance(hooks, list):
            for index, data in enumerate(hooks):
                if isinstance(data, dict):
                    yield Handler(self, index, data)

    @property
    def matcher(self) -> str | None:
        value = self.data.get("matcher")
        return value if isinstance(value, str) else None

    @property
    def on_tool(self) -> bool:
        return self.event in TOOL_EVENTS

    @property
    def takes_matcher(self) -> bool:
        return bool(EVENTS.get(self.event, ("", ()))[0])

    @property
    def exact(self) -> list[str] | None:
        """The names of an exact-list matcher; ``None`` for a regular expression and for one that matches everything."""
        matcher = self.matcher
        if not matcher or matcher == "*":
            return None
        if self.event in ("FileChanged", "StopFailure"):
            return [n for n in matcher.split("|") if n] if _NARROW.match(matcher) else None
        return [n.strip() for n in re.split(r"[|,]", matcher) if n.strip()] if _EXACT.match(matcher) else None

    @property
    def expression(self) -> str | None:
        """The matcher where it is read as a regular expression."""
        return self.matcher if self.matcher and self.matcher != "*" and self.exact is None else None

    def set_matcher(self, value: str, message: str, kind: FixClass = "safe") -> Fix | None:
        file = self.hooks.file
        return file.set_value(value, *self.hooks.base, self.event, self.index, "matcher", message=message, kind=kind) \
            if isinstance(file, JsonFile) else None


class Handler:
    def __init__(self, group: Group, index: int, data: dict[str, Any]) -> None:
        self.group, self.index, self.data, self.plugin = group, index, data, group.plugin
        self.event, self.home = group.event, group.hooks.home
        self.file = group.hooks.file

    @property
    def path(self) -> tuple[Pointer, ...]:
        return (*self.group.hooks.base, self.event, self.group.index, "hooks", self.index)

    def at(self, message: str, *pointer: Pointer, **more: Any) -> Diagnostic:
        return self.group.at(message, "hooks", self.index, *pointer, **more)

    @property
    def type(self) -> Any:
        return self.data.get("type")

    @property
    def command(self) -> str:
        value = self.data.get("command")
        return value if isinstance(value, str) and self.type == "command" else ""

    @property
    def args(self) -> list[str] | None:
        """The arguments of the exec form; ``None``: shell form."""
        value = self.data.get("args")
        return [a for a in value if isinstance(a, str)] if isinstance(value, list) else None

    @property
    def shell_form(self) -> bool:
        return bool(self.command) and self.args is None

    @property
    def words(self) -> str:
        """Command and arguments as one text, for rules that look for words."""
        return " ".join([self.command, *(self.args or [])])

    def set_value(self, key: str, value: Any, message: str, kind: FixClass = "safe") -> Fix | None:
        if not isinstance(self.file, JsonFile):
            return None
        return self.file.set_value(value, *self.path, key, message=message, kind=kind)

    def drop(self, key: str, message: str, kind: FixClass = "safe") -> Fix | None:
        return self.file.drop(*self.path, key, message=message, kind=kind) if isinstance(self.file, JsonFile) else None
