"""The file system as the policy sees it: a few questions, so that decisions can be worked out on paper too.

Paths are absolute and have ``/``; on Windows ``C:\\Users\\a`` is ``/c/Users/a`` (permissions contract, 6.2).
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
from typing import Protocol

_DRIVE = re.compile(r"^([A-Za-z]):(?=[\\/]|$)")


class View(Protocol):
    windows: bool
    home: str

    def resolve(self, path: str) -> str | None:
        """The path with every link followed; what does not exist is kept. ``None``: it cannot be told."""

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def is_link(self, path: str) -> bool:
        """Whether the path itself is a link, also one that leads nowhere."""

    def entries(self, path: str) -> list[str] | None:
        """The names in a folder; ``None`` where it is none."""

    def ignores_case(self, path: str) -> bool:
        """Whether the file system that holds the path takes ``A`` and ``a`` for the same name."""


class RealView:
    """The machine's own file system. Answers are never kept: a link may change between two calls."""

    def __init__(self, home: str) -> None:
        self.windows = os.name == "nt"
        self.home = posix(home) if self.windows else home
        self._ignores: dict[int, bool] = {}

    def _native(self, path: str) -> str:
        if self.windows and re.match(r"^/[a-z](/|$)", path):
            return f"{path[1]}:{path[2:] or '/'}"
        return path

    def resolve(self, path: str) -> str | None:
        try:
            found = _at_once(path) or os.path.realpath(self._native(path))
        except (OSError, ValueError):
            return None
        return posix(found) if self.windows else found

    def exists(self, path: str) -> bool:
        try:
            return os.path.lexists(self._native(path))
        except (OSError, ValueError):
            return False

    def is_dir(self, path: str) -> bool:
        try:
            return os.path.isdir(self._native(path))
        except (OSError, ValueError):
            return False

    def is_link(self, path: str) -> bool:
        try:
            return os.path.islink(self._native(path))
        except (OSError, ValueError):
            return True

    def entries(self, path: str) -> list[str] | None:
        try:
            return os.listdir(self._native(path))
        except (OSError, ValueError):
            return None

    def ignores_case(self, path: str) -> bool:
        """Asked of the nearest existing folder with a letter in its name; once per device."""
        if self.windows:
            return True
        while True:
            parent, name = posixpath.split(path)
            try:
                here = os.lstat(path)
            except (OSError, ValueError):
                here = None
            if here is not None:
                known = self._ignores.get(here.st_dev)
                if known is not None:
                    return known
                if name.swapcase() != name:
                    try:
                        found = os.path.samestat(here, os.lstat(posixpath.join(parent, name.swapcase())))
                    except (OSError, ValueError):
                        found = False
                    self._ignores[here.st_dev] = found
                    return found
            if parent == path:
                return False
            path = parent


_BY_HANDLE = sys.platform == "linux" and os.path.exists("/proc/self/fd")


def _at_once(path: str) -> str | None:
    """Where an existing path really lies, from the system's own lookup: one call for all of its folders, and no moment between
    two of them in which a link could change. ``None`` where it cannot be told so. Nothing is opened for reading."""
    if not _BY_HANDLE:
        return None
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.readlink(f"/proc/self/fd/{handle}")
    except OSError:
        return None
    finally:
        os.close(handle)
    return found if found.startswith("/") and not found.endswith(" (deleted)") else None


def posix(path: str) -> str:
    """A Windows path in the form that patterns use."""
    path = path.replace("/", "\\")
    if path[:4] in ("\\\\?\\", "\\\\.\\"):
        rest = path[4:]
        path = "\\\\" + rest[4:] if rest[:4].lower() == "unc\\" else rest
    path = _DRIVE.sub(lambda m: "\\" + m[1].lower(), path)
    return path.replace("\\", "/")
