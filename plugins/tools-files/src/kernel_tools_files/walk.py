"""Files below a folder, for Glob and for the search fallback. Links to folders are not followed. Free of the kernel."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from kernel_tools_files.globs import Globs, States
from kernel_tools_files.ignores import Ignores, ignores_above

VERSION_CONTROL = frozenset({".git", ".svn", ".hg", ".bzr", ".jj", ".sl"})


def walk(root: str, globs: Globs, *, respect_ignores: bool, hidden: bool,
         check: Callable[[], None]) -> Iterator[os.DirEntry[str]]:
    """Entries of files (and of links to files) below ``root`` that match. Unreadable folders are passed over.

    Version-control folders are entered only where ``root`` lies in one or the pattern names one.

    :param check: called once a folder; raises to end the walk.
    """
    todo: list[tuple[str, States, Ignores | None]] = [(root, globs.start, ignores_above(root) if respect_ignores else None)]
    while todo:
        check()
        folder, states, ignores = todo.pop()
        if respect_ignores:
            ignores = Ignores(folder, ignores)
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        fits = globs.anywhere(states)
        for entry in entries:
            name = entry.name
            if fits is not None:
                after, matched = states, fits.fullmatch(name) is not None
            else:
                after, matched = globs.step(states, name)
            if not (matched or after) or (not hidden and name.startswith(".")):
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            if not (is_folder or matched):
                continue
            if ignores is not None and ignores.ignored([name], folder=is_folder):
                continue
            if is_folder:
                if after and (name not in VERSION_CONTROL or globs.names(states, name)):
                    todo.append((entry.path, after, ignores))
            elif matched and _is_file(entry):
                yield entry


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Not a folder behind a link; a link that leads nowhere counts, as its name is there."""
    return not entry.is_symlink() or not os.path.isdir(entry.path)
