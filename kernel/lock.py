"""A harness as a file: the run holds what its lock says, byte for byte, or it does not start.

``kernel.lock`` is JSON and lies beside ``harness.yaml`` (``team.lock`` beside ``team.yaml``); the plugin ``manager``
writes it, and puts the set it describes under ``.kernel/sets/<digest of the lock>/``: ``site/`` (packages) and
``plugins/`` (folders without Python). Where no set is there, the environment itself must hold the locked files.

What is checked when: every file of every plugin before any of their code is imported; a module of a Python dependency
when it is imported, from the bytes that are then compiled; the other files of a dependency with its first module.
Nothing is taken on the word of a size, a date or a ``__pycache__``.

Standard library only: this runs before msgspec and pluggy are imported, because they come out of the lock, too.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
from functools import cached_property
from importlib.machinery import BuiltinImporter, ExtensionFileLoader, FrozenImporter, ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from kernel import __version__
from kernel.errors import LockError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kernel.plugins import Plugin

FORMAT = 1
SHOWN = 8
HINT = "kernel harness sync puts the locked files back"


def lock_path(harness: Path) -> Path:
    return harness.with_name("kernel.lock") if harness.stem == "harness" else harness.with_suffix(".lock")


def enter(harness: Path, *, alone: bool = False) -> Lock:
    """Read the lock and let the process import what it holds. Entering the same lock again changes nothing.

    :param alone: the process belongs to the harness (the command line): nothing else can be imported any more.
    :raises LockError: there is no lock, it cannot be used here, or the locked set is not there.
    """
    for finder in sys.meta_path:
        if isinstance(finder, Guard) and finder.lock.harness == harness:
            return finder.lock
    lock = Lock(harness)
    sys.path.insert(0, str(lock.site))
    if alone:
        import site
        import sysconfig

        base = tuple(os.path.realpath(sysconfig.get_path(n)) for n in ("stdlib", "platstdlib"))
        others = tuple(os.path.realpath(p) for p in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"),
                                                      *site.getsitepackages(), site.getusersitepackages()))
        sys.path[1:] = [p for p in sys.path[1:] if p and (r := os.path.realpath(p)).startswith((*base, f"{sys.base_prefix}/lib/python"))
                        and not r.startswith(others)]
        sys.meta_path[:] = [BuiltinImporter, FrozenImporter]  # the finders of editable installs know no lock
    sys.meta_path.insert(2 if alone else 0, Guard(lock, alone))
    return lock


class Lock:
    """A lock that was read. ``site`` is where its packages lie, ``stale`` whether the harness file has changed since."""

    def __init__(self, harness: Path) -> None:
        self.harness, self.path = harness, lock_path(harness)
        try:
            raw = self.path.read_bytes()
            text = harness.read_bytes()
        except OSError as error:
            raise LockError(f"cannot be read: {error.strerror}", context=str(error.filename),
                            hint=f"kernel harness lock {harness} writes the lock") from None
        self.data = _parsed(self.path, raw)
        self.stale = hashlib.sha256(text.replace(b"\r\n", b"\n")).hexdigest() != self.data["harness"]
        home = Path(os.environ.get("KERNEL_HARNESS_DIR") or harness.parent / ".kernel")
        folder = home / "sets" / hashlib.sha256(raw).hexdigest()[:16]
        self.has_set = folder.is_dir()
        self.site, self.folders = folder / "site", folder / "plugins"
        if not self.has_set:
            import sysconfig

            self.site = Path(sysconfig.get_path("purelib"))
        if self.data["kernel"] != __version__:
            raise LockError(f"locked for kernel {self.data['kernel']}, this is {__version__}", context=str(self.path),
                            hint=f"install kernel-harness=={self.data['kernel']}, or lock again")
        root = str(self.site)
        self.files = {os.path.join(root, name): (digest, owner) for owner, item in self.data["distributions"].items()
                      for name, digest in item["files"].items()}

    @cached_property
    def plugin_folders(self) -> list[Path]:
        return [self.folders / name for name, item in self.data["plugins"].items() if "files" in item]

    def verify(self) -> None:
        """Compare every file of every plugin with the lock.

        :raises LockError: names each plugin and file that differs, is missing, or is there and not locked.
        """
        found: list[str] = []
        for name, item in self.data["plugins"].items():
            if "files" in item:
                files = {os.path.join(self.folders, name, f): d for f, d in item["files"].items()}
                root = os.path.join(self.folders, name)
            else:
                locked = self.data["distributions"][item["distribution"]]["files"]
                files = {os.path.join(self.site, f): d for f, d in locked.items()}
                root = os.path.join(self.site, item["package"])
            found += [f"plugin {name}: {path} {fault}" for path, fault in faults(files)]
            found += [f"plugin {name}: {path} is not in the lock" for path in _extra(root, files)]
        if found:
            if not self.has_set:
                found.append(f"the locked set is not in {self.folders.parent}, so the environment was looked at")
            more = f" (and {len(found) - SHOWN} more)" if len(found) > SHOWN else ""
            raise LockError("; ".join(found[:SHOWN]) + more, context=str(self.path), hint=HINT)

    def admit(self, found: Iterable[Plugin]) -> list[Plugin]:
        """The plugins in the lock's order. One that is not locked stays out."""
        rank = {name: n for n, name in enumerate(self.data["order"])}
        plugins = sorted(found, key=lambda p: (rank.get(p.name, len(rank)), p.name))
        for plugin in plugins:
            if plugin.name not in self.data["plugins"] and plugin.state == "ready":
                plugin.leave("blocked", f"is not in {self.path}, so it does not load")
        return plugins


def _parsed(path: Path, raw: bytes) -> dict[str, Any]:
    try:
        data = json.loads(raw)
        if data["lock"] != FORMAT:
            raise LockError(f"has format {data['lock']!r}, this kernel reads {FORMAT}", context=str(path), hint="lock again")
        ok = all(isinstance(data[k], t) for k, t in (("plugins", dict), ("distributions", dict), ("settings", dict), ("order", list),
                                                     ("block", list), ("harness", str), ("kernel", str)))
        for item in (*data["distributions"].values(), *data["plugins"].values()):
            names = item.get("files", {})
            ok = ok and all(isinstance(d, str) and not os.path.isabs(n) and ".." not in n.split("/") for n, d in names.items())
        ok = ok and all("files" in i for i in data["distributions"].values()) and all(
            ("/" not in n and n not in ("", ".", "..")) and ("files" in i or (i["distribution"] in data["distributions"] and i["package"]))
            for n, i in data["plugins"].items())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LockError(f"is no lock: {type(error).__name__}: {error}", context=str(path), hint="lock again") from None
    if not ok:
        raise LockError("is no lock: a field has the wrong form", context=str(path), hint="lock again")
    return dict(data)


def faults(files: dict[str, str]) -> Iterable[tuple[str, str]]:
    """(path, what is wrong) for each file that is not as its digest says."""
    for path, digest in files.items():
        try:
            with open(path, "rb", buffering=0) as file:
                same = hashlib.sha256(file.read()).hexdigest() == digest
        except OSError as error:
            yield path, f"cannot be read ({error.strerror})"
        else:
            if not same:
                yield path, "has changed since it was locked"


def _extra(root: str, files: dict[str, str]) -> Iterable[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f != "__pycache__"]  # never read: see Source
        yield from (p for f in folders if os.path.islink(p := os.path.join(folder, f)))
        yield from (p for n in names if (p := os.path.join(folder, n)) not in files)
