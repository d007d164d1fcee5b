"""A harness as a file: a run holds what its lock says, byte for byte, or it does not start.

``kernel.lock`` is JSON and lies beside ``harness.yaml`` (``team.lock`` beside ``team.yaml``). The plugin ``manager`` writes
it, and puts the set that it describes under ``.kernel/sets/<digest of the lock>/``: ``site/`` (packages) and ``plugins/``
(folders without Python). Where no set is there, the environment itself must hold the locked files.

Every file of every plugin is compared before any of their code is imported; modules of other distributions when they are
imported (``guard.py``). Sizes, dates and compiled files in ``__pycache__`` prove nothing and are not looked at.

Standard library only: this runs before msgspec and pluggy are imported, because they come out of the lock, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel import __version__
from kernel.errors import LockError
from kernel.guard import Guard, content

if TYPE_CHECKING:
    from kernel.plugins import Plugin

FORMAT = 1
SHOWN = 8
_FIELDS = {"harness": str, "kernel": str, "settings": dict, "order": list, "block": list, "plugins": dict, "distributions": dict}


def lock_path(harness: Path) -> Path:
    """Where the lock of a harness file lies."""
    return harness.with_name("kernel.lock") if harness.stem == "harness" else harness.with_suffix(".lock")


def enter(harness: Path, *, alone: bool = False) -> Lock:
    """Read the lock and let the process import what it holds. Entering the same harness again changes nothing.

    :param alone: the process belongs to the harness (the command line): besides the lock, the standard library and the
        kernel nothing can be imported any more.
    :raises LockError: there is no lock, or it cannot be used here.
    """
    harness = Path(os.path.abspath(harness))
    for finder in sys.meta_path:
        if isinstance(finder, Guard) and finder.lock.harness == harness:
            return finder.lock
    lock = Lock(harness)
    Guard(lock, alone).install()
    return lock


class Lock:
    """A lock that was read.

    ``site`` is where its packages lie (the environment's, where ``has_set`` is false), ``files`` maps each of their files to
    (digest, distribution), ``stale`` says that the harness file has changed since.
    """

    def __init__(self, harness: Path) -> None:
        self.harness, self.path = harness, lock_path(harness)
        try:
            raw, text = self.path.read_bytes(), harness.read_bytes()
        except OSError as error:
            raise LockError(f"cannot be read: {error.strerror}", context=str(error.filename),
                            hint=f"kernel harness lock {harness} writes the lock") from None
        self.data = _parsed(self.path, raw)
        self.stale = hashlib.sha256(text.replace(b"\r\n", b"\n")).hexdigest() != self.data["harness"]
        home = Path(os.environ.get("KERNEL_HARNESS_DIR") or harness.parent / ".kernel")
        self.folder = home / "sets" / hashlib.sha256(raw).hexdigest()[:16]
        self.has_set = self.folder.is_dir()
        self.site = self.folder / "site" if self.has_set else _environment()
        self.files = {os.path.join(self.site, name): (digest, owner)
                      for owner, item in self.data["distributions"].items() for name, digest in item["files"].items()}

    def plugin_folders(self) -> list[Path]:
        return [self.folder / "plugins" / name for name, item in self.data["plugins"].items() if "files" in item]

    def placed(self, distribution: str) -> dict[str, str]:
        """Path below ``site`` -> digest. In an environment a wheel's scripts and data lie elsewhere, as installers like it."""
        files: dict[str, str] = self.data["distributions"][distribution]["files"]
        return files if self.has_set else {f: d for f, d in files.items() if not f.split("/")[0].endswith(".data")}

    def verify(self) -> None:
        """Compare every file of every plugin with the lock.

        :raises LockError: names each plugin and file that differs, is missing, or is there and not locked.
        """
        found: list[str] = []
        for name, item in self.data["plugins"].items():
            if "files" in item:
                base = root = self.folder / "plugins" / name
                locked = item["files"]
            else:
                base, locked = self.site, self.placed(item["distribution"])
                root = base / item["package"]
            files = {os.path.join(base, file): digest for file, digest in locked.items()}
            found += [f"plugin {name}: {path} {fault}" for path, fault in faults(files, links=not self.has_set)]
            found += [f"plugin {name}: {path} is not in the lock" for path in extra(root, files)]
        if found:
            more = f" (and {len(found) - SHOWN} more)" if len(found) > SHOWN else ""
            where = "" if self.has_set else f"; there is no set in {self.folder}, so the environment was looked at"
            raise LockError("; ".join(found[:SHOWN]) + more + where, context=str(self.path),
                            hint=f"kernel harness sync {self.harness} puts the locked files in place")

    def admit(self, found: Iterable[Plugin]) -> list[Plugin]:
        """The plugins in the order of the harness, then by name. One that is not locked stays out."""
        rank = {name: n for n, name in enumerate(self.data["order"])}
        plugins = sorted(found, key=lambda p: (rank.get(p.name, len(rank)), p.name))
        for plugin in plugins:
            if plugin.name not in self.data["plugins"] and plugin.state == "ready":
                plugin.leave("blocked", f"is not in {self.path}, so it does not load")
        return plugins


def faults(files: dict[str, str], *, links: bool) -> Iterator[tuple[str, str]]:
    """(path, what is wrong) for each file that is not as its digest says."""
    for path, digest in files.items():
        try:
            same = hashlib.sha256(content(path, links=links)).hexdigest() == digest
        except OSError as error:
            yield path, f"cannot be read ({error.strerror})"
        else:
            if not same:
                yield path, "has changed since it was locked"


def extra(root: Path, files: dict[str, str]) -> Iterator[str]:
    """Files and links below a plugin's folder that no digest is known for.

    Compiled files in ``__pycache__`` are never read (``guard.py``); a skill or a command in a folder of that name would be.
    """
    for folder, folders, names in os.walk(root):
        compiled = os.path.basename(folder) == "__pycache__"
        yield from (path for f in folders if os.path.islink(path := os.path.join(folder, f)))
        yield from (path for n in names if (path := os.path.join(folder, n)) not in files
                    and not (compiled and (n.endswith(".pyc") or ".pyc." in n)))


def _environment() -> Path:
    import sysconfig

    return Path(sysconfig.get_path("purelib"))


def _parsed(path: Path, raw: bytes) -> dict[str, Any]:
    try:
        data = json.loads(raw)
        wrong = _wrong(data) if isinstance(data, dict) and data.get("lock") == FORMAT else f"lock: must be {FORMAT}"
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        wrong = f"{type(error).__name__}: {error}"
    if wrong:
        raise LockError(f"is no lock that this kernel reads: {wrong}", context=str(path),
                        hint="kernel harness lock writes it anew")
    if data["kernel"] != __version__:
        raise LockError(f"was made for kernel {data['kernel']}, this is {__version__}", context=str(path),
                        hint=f"install kernel-harness=={data['kernel']}, or lock again")
    return dict(data)


def _wrong(data: dict[str, Any]) -> str | None:
    """What does not fit, in words. A path that leaves its folder would be compared, and imported, somewhere else."""
    for key, kind in _FIELDS.items():
        if not isinstance(data.get(key), kind):
            return f"{key}: must be {kind.__name__}"
    if not all(isinstance(name, str) for name in (*data["order"], *data["block"])):
        return "order, block: must be lists of plugin names"
    for name, item in (*data["distributions"].items(), *data["plugins"].items()):
        for file, digest in item.get("files", {}).items():
            if not isinstance(digest, str) or file.startswith("/") or "\\" in file or ".." in file.split("/"):
                return f"{name}, files, {file[:100]!r}: must be a relative path with a digest"
    for name, item in data["plugins"].items():
        known = "files" in item or (item["distribution"] in data["distributions"] and item["package"].isidentifier())
        if not known or "/" in name or "\\" in name or name in ("", ".", ".."):
            return f"plugins, {name[:100]!r}: must name its distribution and package, or hold files"
    bad = next((n for n, item in data["distributions"].items() if not isinstance(item.get("files"), dict)), None)
    return f"distributions, {bad}: files must be an object" if bad is not None else None
