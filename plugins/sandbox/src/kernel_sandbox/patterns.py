"""From patterns of paths to the files that they mean now: a mount covers a file, not a pattern.

Permission rules have gitignore's syntax (permissions contract, 6.2); paths in ``sandbox.filesystem`` are a simpler case.
Only the deny reading is needed here, the wide one.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
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


class _Folder(NamedTuple):
    stamp: int
    hits: tuple[str, ...]
    below: tuple[tuple[str, frozenset[int]], ...]


class Finder:
    """Finds what patterns mean, again and again. Folders that have not changed are not read a second time."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._plain: list[Pattern] = []
        self._anchors: dict[str, list[Pattern]] = {}
        for pattern in patterns:
            if pattern.parts:
                self._anchors.setdefault(pattern.anchor, []).append(pattern)
            else:
                self._plain.append(pattern)
        self._states: dict[str, list[tuple[Part, ...]]] = {}
        self._seen: dict[tuple[str, frozenset[int]], _Folder] = {}
        self.cut: list[Pattern] = []
        """Patterns below whose anchor there was more to search than ``MAX_FOLDERS``."""

    def find(self) -> list[str]:
        """Existing paths, as they are spelt; links are not followed. What a found folder holds is not listed."""
        found = [p.anchor for p in self._plain if os.path.lexists(p.anchor)]
        for anchor, patterns in self._anchors.items():
            found += self._below(anchor, patterns)
        return list(dict.fromkeys(found))

    def _below(self, anchor: str, patterns: list[Pattern]) -> list[str]:
        # A state is the rest of a pattern that a folder's entries still have to fit.
        states = self._states.setdefault(anchor, [])
        start = frozenset(_number(states, rest) for p in patterns for rest in _ways(p.parts))
        hits: list[str] = []
        stack = [(anchor, start)]
        folders = 0
        while stack:
            path, now = stack.pop()
            folders += 1
            if folders > MAX_FOLDERS:
                self.cut = list(dict.fromkeys([*self.cut, *patterns]))
                break
            try:
                stamp = os.stat(path, follow_symlinks=path == anchor).st_mtime_ns
                folder = self._seen.get((path, now))
                if folder is None or folder.stamp != stamp:
                    settled = time.time_ns() - stamp > _SETTLED_NS
                    folder = self._seen[path, now] = self._read(path, now, states, stamp if settled else -1)
            except OSError:
                continue  # not there, or closed to us and so to the command
            hits += folder.hits
            stack += folder.below
        return hits

    def _read(self, path: str, now: frozenset[int], states: list[tuple[Part, ...]], stamp: int) -> _Folder:
        hits: list[str] = []
        below: list[tuple[str, frozenset[int]]] = []
        with os.scandir(path) as entries:
            for entry in entries:
                after: set[int] = set()
                hit = False
                for number in now:
                    first, *rest = states[number]
                    if first is None:
                        after.update(_number(states, way) for way in _ways(states[number]))
                    elif _fits(first, entry.name):
                        hit = hit or not rest
                        after.update(_number(states, way) for way in _ways(tuple(rest)))
                if hit:
                    hits.append(entry.path)
                elif after and entry.is_dir(follow_symlinks=False):
                    below.append((entry.path, frozenset(after)))
        return _Folder(stamp, tuple(hits), tuple(below))


def _ways(parts: tuple[Part, ...]) -> list[tuple[Part, ...]]:
    """The rests to try next: ``**`` may stand for nothing."""
    ways = [parts] if parts else []
    while parts and parts[0] is None:
        parts = parts[1:]
        if parts:
            ways.append(parts)
    return ways


def _number(states: list[tuple[Part, ...]], rest: tuple[Part, ...]) -> int:
    if rest not in states:
        states.append(rest)
    return states.index(rest)
