"""From patterns of paths to the files that they mean now: a mount covers a file, not a pattern.

Permission rules have gitignore's syntax (permissions contract, 6.2); paths in ``sandbox.filesystem`` are a simpler case.
Only the deny reading is needed here, the wide one.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

Part = str | re.Pattern[str] | None
"""One part of a path: a plain name, a glob, or ``None`` for ``**``."""

MAX_FOLDERS = 100_000
"""Folders that are looked into for one set of patterns."""
_SETTLED_NS = 50_000_000
"""A folder that was changed less than this before it was read may change again without a new time stamp."""


class Pattern(Struct, frozen=True):
    """What lies below ``anchor`` and fits ``parts``; the anchor itself where there are none.

    ``text`` and ``origin`` say where it comes from.
    """

    anchor: str
    parts: tuple[Part, ...]
    text: str
    origin: str = ""

    def __str__(self) -> str:
        return f"{self.text} ({self.origin})" if self.origin else self.text


def of_rule(specifier: str, *, cwd: str, home: str, directory: str, origin: str = "") -> Pattern:
    """The pattern of a Read or Edit deny rule.

    :param directory: what ``/x`` is relative to.
    """
    anchored = True
    if specifier.startswith("//"):
        anchor, rest = "/", specifier[2:]
    elif specifier == "~" or specifier.startswith("~/"):
        anchor, rest = home, specifier[2:]
    elif specifier.startswith("/"):
        anchor, rest = directory, specifier[1:]
    else:
        anchor, rest, anchored = cwd, specifier, False
    names = [n for n in rest.split("/") if n not in ("", ".")]
    deep = not anchored and (len(names) <= 1 or (len(names) == 2 and names[1] == "**" and not _wild(names[0])))
    while names[-1:] == ["**"]:  # a folder is denied with all that is in it
        names.pop()
    if deep and names and names[0] != "**":
        names.insert(0, "**")
    return _folded(anchor, names, specifier, origin)


def of_path(text: str, *, home: str, directory: str, origin: str = "") -> list[Pattern]:
    """The patterns of a path to be denied in ``sandbox.filesystem``.

    ``/x`` is the root's ``x``; as permission rules mean the settings' folder by it, a denial counts for both.
    """
    rest = text.lstrip("/")
    if text.startswith("//"):
        anchors, names = ["/"], rest
    elif text == "~" or text.startswith("~/"):
        anchors, names = [home], text[2:]
    elif text.startswith("/"):
        anchors, names = ["/", directory], rest
    else:
        anchors, names = [directory], text
    parts = [n for n in names.split("/") if n not in ("", ".")]
    while parts[-1:] == ["**"]:
        parts.pop()
    return [_folded(anchor, parts, text, origin) for anchor in dict.fromkeys(anchors)]


def absolute(text: str, *, home: str, directory: str) -> str:
    """A path to be allowed in ``sandbox.filesystem``; ``/x`` is the root's ``x``."""
    if text == "~" or text.startswith("~/"):
        text = home + text[1:]
    path = os.path.normpath(os.path.join(directory, text))
    return path[1:] if path.startswith("//") else path


def _folded(anchor: str, names: Sequence[str], text: str, origin: str) -> Pattern:
    """Plain names at the front become part of the anchor, so that less has to be searched."""
    names = list(names)
    while names and not _wild(names[0]) and "\\" not in names[0]:
        anchor = os.path.join(anchor, names.pop(0))
    return Pattern(os.path.normpath(anchor), tuple(map(_part, names)), text, origin)


def _wild(name: str) -> bool:
    return any(c in name for c in "*?[")


def _part(name: str) -> Part:
    if name == "**":
        return None
    if not _wild(name):
        return re.sub(r"\\(.)", r"\1", name)
    try:
        return re.compile(_regex(name), re.DOTALL)
    except re.error:
        return re.compile(".*", re.DOTALL)  # a glob that cannot be read denies what it might mean


def _regex(name: str) -> str:
    """One glob as a regular expression. What follows a star is atomic: no pattern can make matching slow."""
    pieces: list[str] = [""]
    i = 0
    while i < len(name):
        c = name[i]
        i += 1
        if c == "*":
            pieces.append("")
        elif c == "?":
            pieces[-1] += "."
        elif c == "\\" and i < len(name):
            pieces[-1] += re.escape(name[i])
            i += 1
        elif c == "[" and (close := name.find("]", i + (2 if name[i:i + 1] in ("!", "^") else 1))) > 0:
            negated = name[i:i + 1] in ("!", "^")
            inner = re.sub(r"([\\\[^&~|])", r"\\\1", name[i + negated:close])
            pieces[-1] += f"[{'^' if negated else ''}{inner}]"
            i = close + 1
        else:
            pieces[-1] += re.escape(c)
    first, *rest = pieces
    if not rest:
        return first
    return first + "".join(f"(?>.*?{p})" for p in rest[:-1]) + f".*{rest[-1]}"


def _fits(part: Part, name: str) -> bool:
    if part is None:
        return False
    return name == part if isinstance(part, str) else part.fullmatch(name) is not None


State = tuple[str, tuple[Part, ...]]
"""What a folder's entries still have to fit, and which kind of pattern it is a part of."""


class _Folder(NamedTuple):
    stamp: int
    hits: tuple[tuple[str, str], ...]
    below: tuple[tuple[str, int], ...]


class Finder:
    """Finds what patterns mean, again and again. Folders that have not changed are not read a second time.

    :param patterns: by kind. All are searched for at once.
    :param final: the kind inside of whose folders nothing else matters.
    """

    def __init__(self, patterns: Mapping[str, Iterable[Pattern]], final: str = "") -> None:
        self._final = final
        self._kinds = tuple(patterns)
        self._plain: list[tuple[str, Pattern]] = []
        self._anchors: dict[str, list[tuple[str, Pattern]]] = {}
        for kind, given in patterns.items():
            for pattern in given:
                if pattern.parts:
                    self._anchors.setdefault(pattern.anchor, []).append((kind, pattern))
                else:
                    self._plain.append((kind, pattern))
        self._sets: list[frozenset[State]] = []
        self._numbers: dict[frozenset[State], int] = {}
        self._seen: dict[tuple[str, int], _Folder] = {}
        self.cut: list[Pattern] = []
        """Patterns below whose anchor there was more to search than ``MAX_FOLDERS``."""

    def find(self) -> dict[str, list[str]]:
        """Existing paths by kind, as they are spelt; links are not followed. What is in a found folder need not be listed."""
        found: dict[str, dict[str, None]] = {kind: {} for kind in self._kinds}
        for kind, pattern in self._plain:
            if os.path.lexists(pattern.anchor):
                found[kind][pattern.anchor] = None
        for anchor, patterns in self._anchors.items():
            for path, kind in self._below(anchor, patterns):
                found[kind][path] = None
        return {kind: list(paths) for kind, paths in found.items()}

    def _below(self, anchor: str, patterns: list[tuple[str, Pattern]]) -> list[tuple[str, str]]:
        hits: list[tuple[str, str]] = []
        start = self._number(frozenset((kind, way) for kind, p in patterns for way in _ways(p.parts)))
        try:
            stack = [(os.path.realpath(anchor, strict=True), start)]
        except OSError:
            return hits
        seen, stat, folders = self._seen, os.lstat, 0
        while stack:
            place = path, now = stack.pop()
            folders += 1
            if folders > MAX_FOLDERS:
                self.cut = list(dict.fromkeys([*self.cut, *(p for _, p in patterns)]))
                break
            try:
                stamp = stat(path).st_mtime_ns
                folder = seen.get(place)
                if folder is None or folder.stamp != stamp:
                    settled = time.time_ns() - stamp > _SETTLED_NS
                    folder = seen[place] = self._read(path, now, stamp if settled else -1)
            except OSError:
                continue  # not there, or closed to us and so to the command
            hits += folder.hits
            stack += folder.below
        return hits

    def _read(self, path: str, now: int, stamp: int) -> _Folder:
        hits: list[tuple[str, str]] = []
        below: list[tuple[str, int]] = []
        with os.scandir(path) as entries:
            for entry in entries:
                after: set[State] = set()
                kinds: set[str] = set()
                for kind, parts in self._sets[now]:
                    if parts[0] is None:
                        after.update((kind, way) for way in _ways(parts))
                    elif _fits(parts[0], entry.name):
                        if len(parts) == 1:
                            kinds.add(kind)
                        after.update((kind, way) for way in _ways(parts[1:]))
                hits += [(entry.path, kind) for kind in kinds]
                if after and self._final not in kinds and entry.is_dir(follow_symlinks=False):
                    below.append((entry.path, self._number(frozenset(after))))
        return _Folder(stamp, tuple(hits), tuple(below))

    def _number(self, states: frozenset[State]) -> int:
        if states not in self._numbers:
            self._numbers[states] = len(self._sets)
            self._sets.append(states)
        return self._numbers[states]


def _ways(parts: tuple[Part, ...]) -> list[tuple[Part, ...]]:
    """The rests to try next: ``**`` may stand for nothing."""
    ways = [parts] if parts else []
    while parts and parts[0] is None:
        parts = parts[1:]
        if parts:
            ways.append(parts)
    return ways
