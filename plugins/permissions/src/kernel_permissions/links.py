"""Whether a command may change links while it runs, so that what its paths mean now is not what they will mean.

Paths are looked up before the command runs. That is enough as long as it makes, moves and removes no link: then a path
without links stays where it stands, and one with links leads where it leads now. So a part that may change links
(``mv`` and ``cp`` of a link or of a tree that holds one, ``ln``, ``tar``, ``git checkout``, ...) makes the other paths of
the command uncertain: those that pass through any link, those at or below a place where it puts something, and globs.
The order of the parts does not count: pipes, loops and ``&`` have none.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import NamedTuple
from unicodedata import normalize

from . import filecmds
from .paths import Places, Target, under
from .syntax import Word, lazy
from .wrappers import git_plain

MAX_ENTRIES = 500
"""Entries of a tree that are looked at; a larger one counts as holding links."""
_ANYWHERE = frozenset((
    "ln link symlink install rename prename tar bsdtar unzip 7z cpio pax rsync ditto stow patch mount umount").split())
"""Programs that may make links at places that their words do not tell."""
_GIT = frozenset((
    "checkout switch clone pull merge rebase reset restore stash apply am worktree submodule cherry-pick revert read-tree "
    "checkout-index clean rm mv bisect sparse-checkout").split())
_KEEPS_LINKS = re.compile(r"-[A-Za-z]*[adrPR]|--(?:a|r|no-d)")


class Change(NamedTuple):
    """A command that may change links, and the places where it puts something; ``None``: anywhere."""

    layer: list[Word]
    puts: list[str] | None


class Links:
    """:param layers: every command that would run. :param targets: the places of a word, ``None`` where unknown."""

    def __init__(self, layers: list[list[Word]], places: Places, targets: Callable[[Word], list[Target] | None]) -> None:
        self.layers = layers
        self.places = places
        self.view = places.view
        self.targets = targets

    def uncertain(self, word: Word) -> bool:
        """Whether the command itself may change where a word leads."""
        if not self.changes or word.value in ("-", "/dev/null"):
            return False
        if len(self.changes) == 1 and any(word is w for w in self.changes[0].layer):
            return self._late(self.changes[0].layer, word)
        targets = self.targets(word)
        return word.glob or ".." in word.value.split("/") or targets is None or any(self._unsteady(t.all) for t in targets)

    def uncertain_place(self, path: str) -> bool:
        """The same for a place that ``mv`` or ``cp`` makes up: a folder and the name of a source."""
        return len(self.changes) > 1 and self._unsteady((path,))

    @lazy
    def changes(self) -> list[Change]:
        found = [Change(layer, puts) for layer in self.layers for puts in self._changed(layer)]
        if found:  # what another part puts somewhere may be what these move or copy next
            known = [c.layer for c in found]
            found += [Change(layer, self._puts(layer, again=True)) for layer in self.layers
                      if layer[0].value in ("mv", "cp") and not any(layer is k for k in known)]
        return found

    def _changed(self, layer: list[Word]) -> list[list[str] | None]:
        """Nothing where a command leaves all links as they are, else one entry: where it puts something."""
        name = layer[0].value
        if name in _ANYWHERE:
            return [None]
        if name == "git":
            words = git_plain(layer) or layer
            return [None] if any(w.value in _GIT for w in words[1:2]) else []
        if name == "find":
            return [[]] if any(w.value == "-delete" for w in layer) else []
        if name not in ("mv", "cp", "rm", "sed"):
            return []
        edit = filecmds.edits(layer)
        if isinstance(edit, str) or any("{}" in w.value for w in layer):
            return [] if name == "sed" else [[]] if name == "rm" else [None]
        touched = edit.sources if name in ("mv", "cp") else edit.writes
        if name == "cp" and not any(_KEEPS_LINKS.match(w.value) for w in layer[1:]):
            touched = []
        replaced = edit.writes[-1:] if name in ("mv", "cp") else []
        if any(self._linked(w, deep=name != "sed") for w in touched) or any(self._linked(w, deep=False) for w in replaced):
            return [self._puts(layer) if name in ("mv", "cp") else []]
        return []

    def _puts(self, layer: list[Word], again: bool = False) -> list[str] | None:
        """The places where ``mv`` or ``cp`` puts its sources, each as given and resolved.

        :param again: another part changes links too, so that a glob may find more than now.
        """
        edit = filecmds.edits(layer)
        if isinstance(edit, str) or (again and any(w.glob for w in layer)):
            return None
        folders = self.targets(edit.writes[-1])
        sources = [t for w in edit.sources for t in self.targets(w) or ()]
        if folders is None or any(self.targets(w) is None for w in edit.sources):
            return None
        names = {posixpath.basename(s.given) for s in sources}
        found = [posixpath.join(f, name) for t in folders for f in t.all for name in names]
        found += [f for t in folders for f in t.all if not any(under(root, f) for root in self.places.roots)]
        return [_folded(f) for f in found]

    def _linked(self, word: Word, *, deep: bool) -> bool:
        """Whether a word may name a link, or a tree that holds one."""
        targets = self.targets(word)
        if targets is None:
            return True
        return any(self.view.is_link(t.given) or (deep and self._holds_links(t.given)) for t in targets)

    def _holds_links(self, folder: str) -> bool:
        open_, seen = [folder], 0
        while open_:
            place = open_.pop()
            for name in self.view.entries(place) or ():
                path = posixpath.join(place, name)
                seen += 1
                if seen > MAX_ENTRIES or self.view.is_link(path):
                    return True
                if self.view.is_dir(path):
                    open_.append(path)
        return False

    def _late(self, layer: list[Word], word: Word) -> bool:
        """Whether a command that handles several files may have changed the way to a later one."""
        if sum(not w.value.startswith("-") for w in layer[1:]) <= 2 and not any(w.glob for w in layer):
            return False
        targets = self.targets(word)
        return targets is None or any(self._unsteady((posixpath.dirname(t.given),)) for t in targets)

    def _unsteady(self, paths: tuple[str, ...]) -> bool:
        """Whether a place, in its spellings, is reached through a link or lies where a change puts something."""
        if any(self._passes_link(path) for path in paths):
            return True
        return any(c.puts is None or any(under(_folded(path), put) for path in paths for put in c.puts) for c in self.changes)

    def _passes_link(self, path: str) -> bool:
        root = max((r for r in self.places.roots if under(path, r)), key=len, default=None)
        if root is None:
            return True
        while path != root:
            if self.view.is_link(path):
                return True
            path = posixpath.dirname(path)
        return False


def _folded(path: str) -> str:
    """For comparing on any file system."""
    return normalize("NFC", path).casefold()
