"""The file system that a command sees, as mounts: what is writable, what stays read-only, what is hidden.

Pure but for three questions about paths, so that the rules can be tested as a table.

The root is read-only. On it, the deeper path is mounted later and so counts more, with these exceptions: a denied write
is denied at every depth; a path of a deny *rule* is hidden whatever is allowed below it; nothing is mounted where it
would change nothing, since each mount is a border that files cannot be moved across.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Kind = Literal["writable", "readonly", "hidden"]

MAX_MOUNTS = 2_200
"""bubblewrap takes 9,000 arguments; a mount is three of them, or four."""


class TooMany(Exception):
    """More mounts than bubblewrap takes."""


class Plan(Struct, kw_only=True):
    """All paths resolved and existing.

    :param writable: may be written. ``free``: also inside of what is kept.
    :param kept: read-only, though a writable place may lie inside if it is ``free``.
    :param denied: read-only with all that is inside.
    :param hidden: not readable. ``shown``: readable inside of what is hidden. ``sealed``: not readable, nor anything inside.
    :param own: folders that the harness itself needs: readable, whatever is hidden around them.
    :param pinned: folders that cannot be moved away.
    """

    writable: Iterable[str] = ()
    free: Iterable[str] = ()
    kept: Iterable[str] = ()
    denied: Iterable[str] = ()
    hidden: Iterable[str] = ()
    shown: Iterable[str] = ()
    sealed: Iterable[str] = ()
    own: Iterable[str] = ()
    pinned: Iterable[str] = ()


def under(path: str, folder: str) -> bool:
    return path == folder or folder == "/" or path.startswith(folder + "/")


class View:
    """Answers what holds for a path, and gives the mounts that make it hold."""

    def __init__(self, plan: Plan) -> None:
        self.writable = set(plan.writable)
        self.free = set(plan.free)
        self.kept = set(plan.kept)
        self.denied = set(plan.denied)
        self.own = set(plan.own)
        self.shown = set(plan.shown) | self.own
        self.sealed = set(plan.sealed) - self.own
        self.hidden = set(plan.hidden) - self.shown
        self.pinned = set(plan.pinned)

    def kind(self, path: str) -> Kind:
        """What a command may do with the path."""
        above = [path, *_parents(path)]
        if next((p in self.sealed for p in above if p in self.sealed or p in self.own), False):
            return "hidden"
        near = next((p for p in above if p in self.hidden or p in self.shown), None)
        if near is not None and near in self.hidden:
            return "hidden"
        if any(p in self.denied for p in above):
            return "readonly"
        for p in above:
            if p in self.free:
                return "writable"
            if p in self.kept:
                return "readonly"
            if p in self.writable:
                return self._unless_kept(p)
        return "readonly"

    def _unless_kept(self, path: str) -> Kind:
        """What is allowed by settings does not open what is kept, only what is free does."""
        for p in _parents(path):
            if p in self.free:
                return "writable"
            if p in self.kept:
                return "readonly"
        return "writable"

    def mounts(self, mask: str) -> list[str]:
        """Arguments for bubblewrap, to follow the root, which is of the kind that the view says.

        :param mask: an empty file that nobody can read; covers hidden files.
        :raises TooMany: there are too many.
        """
        points = self.writable | self.free | self.kept | self.denied | self.hidden | self.shown | self.sealed
        points |= self._pins()
        found: dict[str, Kind] = {"/": self.kind("/")}
        arguments: list[str] = []
        for path in sorted(points - {"/"}, key=lambda p: (p.count("/"), p)):
            kind = self.kind(path)
            around = next(found[p] for p in _parents(path) if p in found)
            if kind == around and path not in self.pinned:
                continue
            found[path] = kind
            if kind == "hidden":
                arguments += self._cover(path, mask)
            else:
                arguments += ["--bind" if kind == "writable" else "--ro-bind", path, path]
            if len(found) > MAX_MOUNTS:
                raise TooMany
        return arguments

    def _cover(self, path: str, mask: str) -> list[str]:
        if not os.path.isdir(path):
            return ["--ro-bind", mask, path]
        opens = any(under(p, path) for p in (self.own if path in self.sealed else self.shown))
        return ["--perms", "0111" if opens else "0000", "--tmpfs", path]

    def _pins(self) -> set[str]:
        """Folders between a writable place and what is read-only in it: moved away, they would take the mount with them."""
        pins = set(self.pinned)
        for path in self.kept | self.denied:
            for folder in _parents(path):
                if folder in self.writable or folder in self.free or folder == "/":
                    break
                pins.add(folder)
        self.pinned = {p for p in pins if self.kind(p) == "writable"}
        return self.pinned


def _parents(path: str) -> Iterable[str]:
    while path != "/":
        path = os.path.dirname(path)
        yield path
