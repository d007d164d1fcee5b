"""Compare every locked file with what is there: plugins, their dependencies, and what nobody locked."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sysconfig
from pathlib import Path

from msgspec import Struct

from kernel_manager.harness_file.lockfile import Lock


class Problem(Struct, frozen=True, kw_only=True):
    """One file that is not as it was locked. ``owner`` is a distribution, or ``plugin NAME``."""

    owner: str
    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.owner}: {self.file} {self.what}"


def problems(lock: Lock, folder: Path) -> list[Problem]:
    """What is wrong with a set."""
    site, found = folder / "site", list[Problem]()
    known, owners = set[str](), _owners(lock)
    for name, item in lock.distributions.items():
        found += _compare(owners.get(name, name), site, item.files)
        known |= item.files.keys()
    found += [Problem(owner="the set", file=str(site / f), what="is not in the lock") for f in _extra(site, known)]
    for name, plugin in lock.plugins.items():
        if plugin.files is not None:
            root = folder / "plugins" / name
            found += _compare(f"plugin {name}", root, plugin.files)
            found += [Problem(owner=f"plugin {name}", file=str(root / f), what="is not in the lock")
                      for f in _extra(root, plugin.files.keys())]
    folders = {name for name, plugin in lock.plugins.items() if plugin.files is not None}
    for other in sorted(os.listdir(folder / "plugins") if (folder / "plugins").is_dir() else ()):
        if other not in folders:
            found.append(Problem(owner="the set", file=str(folder / "plugins" / other), what="is not in the lock"))
    return found


def in_environment(lock: Lock) -> list[Problem]:
    """What is wrong with the environment that this Python runs in. What else is installed there does not matter; the
    scripts and data of wheels lie elsewhere and are left out. Plugins that are folders need a set."""
    site, found, owners = Path(sysconfig.get_path("purelib")), list[Problem](), _owners(lock)
    for name, item in lock.distributions.items():
        files = {f: d for f, d in item.files.items() if not f.split("/")[0].endswith(".data")}
        found += _compare(owners.get(name, name), site, files, links=True)
    for name, plugin in lock.plugins.items():
        if plugin.files is not None:
            found.append(Problem(owner=f"plugin {name}", file=name, what="is a folder, which an environment does not hold"))
        elif plugin.distribution and plugin.package:
            known = {f.removeprefix(f"{plugin.package}/") for f in lock.distributions[plugin.distribution].files}
            found += [Problem(owner=f"plugin {name}", file=str(site / plugin.package / f), what="is not in the lock")
                      for f in _extra(site / plugin.package, known)]
    return found


def _owners(lock: Lock) -> dict[str, str]:
    """Distribution -> the plugin in it."""
    return {plugin.distribution: f"plugin {name}" for name, plugin in lock.plugins.items() if plugin.distribution}


def _digest(path: str, links: bool) -> str:
    """As the kernel reads it: a regular file, and in a set no link."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | (0 if links else getattr(os, "O_NOFOLLOW", 0)))
    with open(handle, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "is no regular file", path)
        return hashlib.sha256(file.read()).hexdigest()


def _compare(owner: str, root: Path, files: dict[str, str], *, links: bool = False) -> list[Problem]:
    found: list[Problem] = []
    base = os.path.join(root, "")
    for name, digest in files.items():
        try:
            same = _digest(base + name, links) == digest
        except OSError as error:
            found.append(Problem(owner=owner, file=base + name, what=f"cannot be read ({error.strerror})"))
        else:
            if not same:
                found.append(Problem(owner=owner, file=base + name, what="has changed since it was locked"))
    return found


def _extra(root: Path, known: object) -> list[str]:
    """Files and links that are not known. Compiled files in ``__pycache__`` are never read by a locked run."""
    assert hasattr(known, "__contains__")
    found: list[str] = []
    for folder, folders, names in os.walk(root):
        folders.sort()
        if os.path.basename(folder) == "__pycache__":
            names = [n for n in names if not n.endswith(".pyc") and ".pyc." not in n]
        below = os.path.relpath(folder, root)
        for name in (*(f for f in folders if os.path.islink(os.path.join(folder, f))), *sorted(names)):
            path = name if below == "." else f"{below.replace(os.sep, '/')}/{name}"
            if path not in known:
                found.append(path)
    return found
