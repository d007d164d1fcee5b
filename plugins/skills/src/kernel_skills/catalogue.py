"""Which skills and commands there are: found, read as far as the listing needs, under the names that people and the model use.

A file is read again only when it changed. (skills contract, sections 2, 4 and 5)
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct, field

from kernel import Component, Components, Frontmatter, find_components, parse_frontmatter, read_frontmatter
from kernel_skills.values import CONTROL, EFFORTS, Fields, one_line

if TYPE_CHECKING:
    from kernel import Plugin, Session

MAX_NAME = 200
_BAD_NAME = re.compile(r"[\s/\\<>\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
"""What cannot be typed or seen, or would look like markup in the listing."""
_OWN: tuple[Literal["managed", "user", "project", "added"], ...] = ("managed", "user", "project", "added")


class Skill(Struct, kw_only=True):
    """A skill or a command; ``name`` is what is typed behind the slash.

    ``lost``: the fields could not be read, so only a person may run it and it grants nothing. ``listed``: how the model is told,
    ``full``, ``name`` or ``not``. ``place`` is the directory that a nested skill belongs to.
    """

    name: str
    component: Component
    description: str = ""
    when_to_use: str = ""
    argument_hint: str = ""
    arguments: list[str] = field(default_factory=list)
    by_model: bool = True
    by_user: bool = True
    listed: str = "full"
    allowed: list[str] = field(default_factory=list)
    disallowed: list[str] = field(default_factory=list)
    model: str = ""
    effort: str = ""
    fork: bool = False
    agent: str = ""
    background: bool = True
    hooks: dict[str, Any] | None = None
    paths: list[str] = field(default_factory=list)
    shell: str = ""
    lost: bool = False
    place: str = ""
    problems: list[str] = field(default_factory=list)

    @property
    def plugin(self) -> Plugin | None:
        return self.component.plugin

    @property
    def path(self) -> str:
        return self.component.path

    @property
    def directory(self) -> str:
        return os.path.dirname(self.component.path) if self.component.content is None else self.component.folder

    @property
    def is_command(self) -> bool:
        return self.component.kind == "commands" and not self.component.is_skill

    @property
    def needs_approval(self) -> bool:
        """Whether it brings more than text: the model's own call of it is asked about then."""
        return bool(self.allowed or self.hooks)


class Catalogue:
    """All skills of a session by name. ``problems`` are for people: each names its file, and the field where there is one."""

    def __init__(self) -> None:
        self.by_name: dict[str, Skill] = {}
        self.bare: dict[str, str] = {}
        """Bare names of plugin skills that nothing else owns -> full names."""
        self.problems: dict[str, str] = {}
        """What is wrong -> the name of the plugin that brought it, or an empty text."""
        self.nested: list[tuple[str, Components]] = []
        """Skills below the start directory that were met: (the directory they belong to, what was found)."""
        self._read: dict[tuple[str, str, tuple[int, int, int]], Skill] = {}
        self._plugins: list[Component] = []
        self._faults: list[Any] = []
        self._seen: Any = None

    def load(self, session: Session, *, plugins: bool = True) -> list[str]:
        """Look again; the paths of files that came, changed or went. The first time it is all of them.

        :param plugins: false leaves what plugins bring as it was found before.
        """
        found, faults = self._find(session, plugins)
        overrides = session.settings.get("skillOverrides")
        overrides = overrides if isinstance(overrides, dict) else {}
        files = {c.path: c.stamp for c in found}
        before: dict[str, tuple[int, int, int]] = self._seen[0] if self._seen else {}
        if self._seen == (files, overrides, len(self.nested)):
            return []
        self._seen = files, overrides, len(self.nested)
        self.problems = {str(fault): fault.plugin for fault in faults}
        self.by_name, known, self._read = {}, self._read, {}
        places = {c.path: place for place, of in self.nested for c in of.items}
        for component in found:
            key = component.kind, f"{component.path}\0{component.name}", component.stamp
            self._read[key] = known.get(key) or describe(component)
            self._add(msgspec.structs.replace(self._read[key], place=places.get(component.path, "")), overrides)
        self.name_bare()
        return sorted(path for path in files.keys() | before.keys() if files.get(path) != before.get(path))

    def _find(self, session: Session, plugins: bool) -> tuple[list[Component], list[Any]]:
        own = [find_components(session, kind, _OWN) for kind in ("skills", "commands")]
        if plugins:
            theirs = [find_components(session, kind, ("plugin",)) for kind in ("skills", "commands")]
            self._plugins = [c for of in theirs for c in of.items]
            self._faults = [f for of in theirs for f in of.faults]
        every = [*own, *(components for _, components in self.nested)]
        return [c for of in every for c in of.items] + self._plugins, [f for of in every for f in of.faults] + self._faults

    def _add(self, skill: Skill, overrides: dict[str, Any]) -> None:
        """Under its name, unless something of a higher level has it; a nested one is then offered under its directory."""
        owner = skill.plugin.name if skill.plugin else ""
        for problem in skill.problems:
            self.problems[f"{skill.path}: {problem}"] = owner
        place = skill.place.replace(os.sep, "").replace(" ", "")  # part of the name where another has the plain one
        if _BAD_NAME.search(skill.name + place) or len(skill.name) > MAX_NAME:
            self.problems[f"{skill.path}: {one_line(skill.name)[:80]!r} cannot be a command's name"] = owner
            return
        if skill.name in self.by_name:
            other = self.by_name[skill.name]
            if owner and other.plugin is skill.plugin and not (skill.is_command and not other.is_command):
                self.problems[f"{skill.path}: is left out, {other.path} has the name {skill.name!r} already"] = owner
            if not skill.place:
                return
            skill.name = f"{skill.place}:{skill.component.name}"
        if not owner:
            _override(skill, overrides.get(skill.name))
        self.by_name.setdefault(skill.name, skill)

    def name_bare(self) -> None:
        bare: dict[str, list[str]] = {}
        for name, skill in self.by_name.items():
            if skill.plugin is not None:
                bare.setdefault(name.partition(":")[2], []).append(name)
        self.bare = {name: full[0] for name, full in bare.items() if len(full) == 1 and name not in self.by_name}

    def get(self, name: str) -> Skill | None:
        """By its name, with or without the slash; a plugin's also by its bare name where that is the only one."""
        name = name.strip().removeprefix("/")
        return self.by_name.get(name) or self.by_name.get(self.bare.get(name, ""))

    def variants(self, skill: Skill) -> list[Skill]:
        """Nested skills that have the same name of their own."""
        return [s for s in self.by_name.values() if s.place and s is not skill and s.component.name == skill.component.name]


def _override(skill: Skill, value: Any) -> None:
    """What ``skillOverrides`` says of a skill that no plugin brought."""
    if value == "off":
        skill.by_model = skill.by_user = False
    elif value == "user-invocable-only":
        skill.by_model = False
    elif value == "name-only":
        skill.listed = "name"


def read(component: Component, *, body: bool) -> Frontmatter:
    """The file, or the text that stands in the manifest."""
    return read_frontmatter(component.path, body=body) if component.content is None else parse_frontmatter(component.content)


def describe(component: Component) -> Skill:
    """Read the head of a file. Never raises; what is wrong stands in ``problems``."""
    front = read(component, body=False)
    fields = Fields(front.fields)
    is_command = component.kind == "commands" and not component.is_skill
    label = "" if is_command else one_line(fields.text("name"))
    skill = Skill(
        name=_name(component, label, fields), component=component,
        description=fields.text("description") or _first(front.body, is_command), when_to_use=fields.text("when_to_use"),
        argument_hint=one_line(fields.hint("argument-hint")), arguments=fields.words("arguments"),
        by_model=not fields.flag("disable-model-invocation", False), by_user=fields.flag("user-invocable", True),
        allowed=fields.rules("allowed-tools"), disallowed=fields.rules("disallowed-tools"), model=fields.text("model"),
        effort=fields.choice("effort", EFFORTS), fork=fields.choice("context", ("fork",)) == "fork", agent=fields.text("agent"),
        background=fields.flag("background", True), hooks=fields.map("hooks"),
        paths=[] if is_command else fields.globs("paths"), shell=fields.choice("shell", ("bash", "powershell")))
    if front.problem:
        skill.problems.append(front.problem)
    skill.problems += fields.problems
    if front.lost or not front.readable:
        skill.lost, skill.by_model = True, False
    if not front.readable:
        skill.by_user = False
    return skill


def _name(component: Component, label: str, fields: Fields) -> str:
    """The command's name (2.2): the place, and in a plugin the skill's own name behind the plugin's."""
    if component.plugin is None:
        return component.name
    own = component.name
    if component.kind == "skills" and label:
        if _BAD_NAME.search(label) or ":" in label or len(label) > MAX_NAME:
            fields.problems.append(f"name: {label[:80]!r} cannot be a command's name; the folder's name {own!r} is used")
        else:
            own = label
    return f"{component.plugin.name}:{own}"


def _first(body: str, is_command: bool) -> str:
    """What describes a file that does not do so itself: its first line (commands) or paragraph."""
    lines: list[str] = []
    for line in body[:4_000].splitlines():
        text = CONTROL.sub(" ", line).strip().lstrip("#").strip()
        if not text.strip("-"):
            if lines:
                break
            continue
        lines.append(text)
        if is_command:
            break
    return " ".join(lines)


def names(skills: Iterable[Skill]) -> str:
    return ", ".join(skill.name for skill in skills)
