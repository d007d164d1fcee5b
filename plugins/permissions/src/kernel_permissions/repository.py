"""Which repository git would find, told from names of files alone (permissions contract, 5.7).

A repository's ``config`` names programs that git runs (``core.fsmonitor``, ``diff.external``, ...), also for ``git
status``. The configuration of the person's own clone is theirs. But git takes every folder with the look of a bare
repository for one, and such a folder can lie anywhere in a clone or an archive, or be written file by file.
"""

from __future__ import annotations

import posixpath

from .paths import under
from .view import View


def foreign(view: View, here: str, start: str, *, changing: bool) -> str:
    """``""`` where git, run in ``here``, would use a ``.git`` at or above the session's start directory, or none at all.

    :param changing: other parts of the command may make files or folders before git looks for them.
    """
    place, above = view.resolve(here), view.resolve(start)
    if place is None or above is None:
        return "which repository git would use is not known"
    first = place
    while True:
        if view.exists(posixpath.join(place, "HEAD")):
            return "git may take a folder with a file HEAD for a repository"
        git = posixpath.join(place, ".git")
        if view.is_link(git):
            return "the repository that git would use is behind a link"
        if view.exists(git) and (not view.is_dir(git) or _complete(view, git)):
            if not under(above, place):
                return "the repository that git would use lies below the directory that the session started in"
            return "git runs beside what may make another repository" if changing and place != first else ""
        parent = posixpath.dirname(place)
        if parent == place:
            return "git runs beside what may make a repository" if changing else ""
        place = parent


def _complete(view: View, git: str) -> bool:
    """Whether git accepts the folder, so that it looks no further."""
    return all(view.exists(posixpath.join(git, name)) for name in ("HEAD", "objects", "refs"))


def found(view: View, here: str) -> bool:
    """Whether git would find any repository."""
    place = view.resolve(here) or here
    while not view.exists(posixpath.join(place, ".git")):
        if place == posixpath.dirname(place):
            return False
        place = posixpath.dirname(place)
    return True
