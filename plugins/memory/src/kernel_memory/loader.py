"""Which instruction files a context gets: at its start, and with the files that it meets (context contract, sections 2 and 3)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kernel import components_in, parse_frontmatter
from kernel_memory import switches, texts
from kernel_memory.approval import is_approved
from kernel_memory.files import Instruction, Kind, Reason
from kernel_memory.globs import Patterns
from kernel_memory.places import Place, between, of_folder, of_session

if TYPE_CHECKING:
    from kernel import Session

MAX_HOPS = 4
MAX_FILES = 1_000
MAX_TOTAL = 16 * 1024 * 1024
"""Files of one context, and the characters of their text together: an import bomb ends there."""
MAX_NAMES = 10_000
"""Names behind ``@`` that are looked for in one context, whether there is such a file or not."""


class Rule(Struct):
    """A rule for certain files that waits for one of them."""

    path: str
    kind: Kind
    globs: tuple[str, ...]
    patterns: Patterns
    roots: tuple[str, ...]
    """The folder that patterns are relative to, as it is named and with links followed."""

    def means(self, paths: tuple[str, ...]) -> bool:
        """:param paths: a file as it was named, and with links followed."""
        return any(path.startswith(root) and self.patterns.match(path[len(root):].replace(os.sep, "/"))
                   for root in self.roots for path in paths)


class Started(Struct, frozen=True):
    """What a context knew when it began; another context of the same project begins with it."""

    seen: frozenset[str] = frozenset()
    waiting: tuple[Rule, ...] = ()
    scanned: frozenset[str] = frozenset()


class Loader:
    """What one context has been told. ``problems`` names what was skipped and why, ``remarks`` what could be better."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.problems: dict[str, None] = {}
        self.remarks: dict[str, None] = {}
        self.seen: set[str] = set()
        """Real paths of what is in the context."""
        self.waiting: list[Rule] = []
        self.started = Started()
        self._looked: set[str] = set()
        self._scanned: set[str] = set()
        self._files = 0
        self._room = MAX_TOTAL
        self._names = MAX_NAMES
        excludes = session.settings.get("claudeMdExcludes")
        given = excludes if isinstance(excludes, list) else [excludes]
        self._excluded = Patterns(tuple(os.path.expanduser(p) for p in given if isinstance(p, str)))

    def start(self, reason: Reason = "session_start") -> list[Instruction]:
        """Everything that a context begins with; whatever came since counts as not told."""
        self.seen, self.waiting, self._looked, self._scanned = set(), [], set(), set()
        self._files, self._room, self._names = 0, MAX_TOTAL, MAX_NAMES
        if not switches.instructions(self.session):
            return []
        found: list[Instruction] = []
        for place in of_session(self.session):
            found += self._place(place, reason)
            if place.kind == "Managed" and place.files:
                found += self._managed_text(reason)
        self.started = Started(frozenset(self.seen), tuple(self.waiting), frozenset(self._scanned))
        return found

    def met(self, path: str, *, read: bool) -> list[Instruction]:
        """What comes with a file that the model read, or wrote without having read it.

        :param read: rules for certain files come with reading alone.
        """
        if not switches.instructions(self.session):
            return []
        found: list[Instruction] = []
        for folder in between(self.session, path):
            if folder not in self._looked:
                self._looked.add(folder)
                for place in of_folder(self.session, folder):
                    found += self._place(place, "nested_traversal", path)
        if read:
            paths = _both(path)
            for rule in [r for r in self.waiting if r.means(paths)]:
                self.waiting.remove(rule)
                text = None if os.path.realpath(rule.path) in self.seen else self._text(rule.path)
                if text is not None:
                    found += self._told(rule.path, rule.kind, parse_frontmatter(text).body, 0, {
                        "reason": "path_glob_match", "trigger": path, "globs": rule.globs})
        return found

    def take_over(self, other: Loader, *, everything: bool) -> None:
        """Begin with what another context began with, or with all that it was told since, too."""
        self.waiting, self._scanned = list(other.started.waiting), set(other.started.scanned)
        self.seen, self.started = set(other.started.seen), other.started
        if everything:
            self.waiting, self._scanned, self._looked = list(other.waiting), set(other._scanned), set(other._looked)
            self.seen = set(other.seen)

    def note(self, paths: list[str]) -> None:
        """These files are in the context already."""
        self.seen |= {os.path.realpath(path) for path in paths}

    # -- one place -------------------------------------------------------------------------------------------------------
    def _managed_text(self, reason: Reason) -> list[Instruction]:
        text = self.session.settings.managed("claudeMd")
        if not isinstance(text, str) or not text.strip():
            return []
        path = next(layer.path for layer in self.session.settings.layers if layer.scope == "managed")
        return [Instruction(path=path, kind="Managed", text=text, reason=reason)]

    def _place(self, place: Place, reason: Reason, trigger: str = "") -> list[Instruction]:
        if not place.rules:
            facts = {"reason": reason, "trigger": trigger}
            return [i for path in place.files for i in self._file(path, place.kind, 0, facts)]
        if not os.path.isdir(place.rules) or os.path.realpath(place.rules) in self._scanned:
            return []
        self._scanned.add(os.path.realpath(place.rules))
        listed = components_in(Path(place.rules), "rules")
        for fault in listed.faults:
            self.problem(fault.path, fault.message)
        found: list[Instruction] = []
        for item in sorted(listed.items, key=lambda component: component.path):
            found += self._rule(item.path, place, reason, trigger)
        return found

    def _rule(self, path: str, place: Place, reason: Reason, trigger: str) -> list[Instruction]:
        real = os.path.realpath(path)
        if real in self.seen or any(r.path == path for r in self.waiting) or self._hidden(path, real, place.kind):
            return []
        text = self._text(path)
        if text is None:
            return []
        head = parse_frontmatter(text)
        if head.problem:
            (self.remarks if "was mended" in head.problem else self.problems)[f"{path}: {head.problem}"] = None
        globs = _globs(head.fields.get("paths"))
        if not globs:
            if head.lost or head.fields.get("paths") not in (None, [], ""):
                self.problem(path, "paths: cannot be used, so the rule is left out (a list of patterns, or one text with commas)")
                return []
            return self._told(path, place.kind, head.body, 0, {"reason": reason, "trigger": trigger})
        patterns = Patterns(globs)
        for pattern in patterns.over:
            self.problem(path, f"paths: {pattern[:80]!r} stands for too many patterns and matches nothing")
        rule = Rule(path, place.kind, globs, patterns, tuple(root.rstrip(os.sep) + os.sep for root in _both(place.root)))
        if trigger and rule.means(_both(trigger)):
            return self._told(path, place.kind, head.body, 0, {"reason": "path_glob_match", "trigger": trigger, "globs": globs})
        self.waiting.append(rule)
        return []

    # -- one file --------------------------------------------------------------------------------------------------------
    def _file(self, path: str, kind: Kind, hops: int, facts: dict[str, Any]) -> list[Instruction]:
        """The file behind what it imports; empty where it is not there, was told already, is excluded or cannot be used."""
        real = os.path.realpath(path)
        if real in self.seen or not os.path.lexists(path) or self._hidden(path, real, kind):
            return []
        text = self._text(path)
        return [] if text is None else self._told(path, kind, text, hops, facts)

    def _told(self, path: str, kind: Kind, text: str, hops: int, facts: dict[str, Any]) -> list[Instruction]:
        self.seen.add(os.path.realpath(path))
        text = texts.without_comments(text)
        found: list[Instruction] = []
        for name in texts.imports(text) if hops < MAX_HOPS and self._names >= 0 else ():
            found += self._imported(name, path, kind, hops, facts)
        if text.strip():
            found.append(Instruction(path=path, kind=kind, text=text, **facts))
        return found

    def _imported(self, name: str, path: str, kind: Kind, hops: int, facts: dict[str, Any]) -> list[Instruction]:
        self._names -= 1
        if self._names < 0:
            self.problem(path, f"@{name[:80]} and what follows is not looked for: there are more than {MAX_NAMES:,} such names")
            return []
        target = _existing(name, os.path.dirname(path)) or _existing(name, os.path.dirname(os.path.realpath(path)))
        if target is None:
            return []  # left as text
        inside = os.path.realpath(target)
        if kind in ("Project", "Local") and not _under(inside, self.session.project_root) and not is_approved(self.session):
            self.problem(path, f"@{name} leads out of the working directory and is not loaded (kernel memory approve allows such "
                               "imports for this project)")
            return []
        return self._file(target, kind, hops + 1, {"reason": "include", "parent": path, "trigger": facts["trigger"]})

    def _text(self, path: str) -> str | None:
        """The text; ``None`` where the file is skipped, which is then said."""
        if self._files >= MAX_FILES or self._room <= 0:
            self.problem(path, f"is left out: there are more than {MAX_FILES:,} instruction files or {MAX_TOTAL:,} characters")
            return None
        try:
            text = texts.read(path)
        except texts.Unusable as error:
            self.problem(path, str(error))
            return None
        self._files += 1
        self._room -= len(text)
        if len(text) > texts.LONG:
            self.remarks[f"{path}: has {len(text):,} characters; above {texts.LONG:,} instructions are followed less well"] = None
        return text

    def _hidden(self, path: str, real: str, kind: Kind) -> bool:
        return kind != "Managed" and (self._excluded.match(path) or self._excluded.match(real))

    def problem(self, path: str, text: str) -> None:
        self.problems[f"{path}: {text}"] = None


def _both(path: str) -> tuple[str, ...]:
    """A path without dots, and with links followed."""
    return tuple(dict.fromkeys((os.path.normpath(path), os.path.realpath(path))))


def _globs(value: Any) -> tuple[str, ...]:
    """``paths`` as a list of patterns; a comma inside braces separates nothing."""
    if isinstance(value, list):
        return tuple(v.strip() for v in value if isinstance(v, str) and v.strip())
    if not isinstance(value, str):
        return ()
    parts, depth, last = [], 0, 0
    for n, char in enumerate(value):
        depth += (char == "{") - (char == "}")
        if char == "," and depth <= 0:
            parts.append(value[last:n])
            last = n + 1
    return tuple(p.strip() for p in [*parts, value[last:]] if p.strip())


def _existing(name: str, folder: str) -> str | None:
    """The file that an import means, with punctuation behind it dropped where that is needed; ``None``: there is none."""
    for given in dict.fromkeys((name, name.rstrip(".,;:!?)\"'"), name.partition("#")[0])):
        path = os.path.normpath(os.path.join(folder, os.path.expanduser(given)))
        if given and "\0" not in given and os.path.isfile(path):
            return path
    return None


def _under(path: str, folder: str) -> bool:
    root = os.path.realpath(folder).rstrip(os.sep)
    return path == root or path.startswith(root + os.sep)
