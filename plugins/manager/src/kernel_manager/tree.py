"""Folders of plugins: copied with the contract's rules for links, and hashed."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from kernel_manager.errors import ManagerError
from kernel_manager.names import check_member, shown
from kernel_manager.unpack import LIMITS, Limits, check_clashes

SKIPPED = frozenset((".git", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"))
"""Folders that are never part of a plugin."""


def copy(source: Path, target: Path, *, within: Path | None = None, limits: Limits = LIMITS) -> list[str]:
    """Copy a plugin folder into a new folder and return warnings (plugins contract, 16.3).

    A link to a place inside the plugin stays a relative link. One to elsewhere in ``within`` (the marketplace) becomes a
    copy of its content; any other is left out with a warning. Devices, pipes and sockets are refused.

    :raises ManagerError: ``unsafe-archive``: a name, a kind of file, the count or the size.
    """
    root = Path(os.path.realpath(source))
    state = _Copy(root, within and Path(os.path.realpath(within)), target, limits, f"folder {source.name}")
    if not root.is_dir():
        raise ManagerError("not-found", f"there is no folder {source}")
    target.mkdir(parents=True)
    state.folder(root, ())
    check_clashes(iter(state.names), state.where)
    return state.warnings


class _Copy:
    def __init__(self, root: Path, within: Path | None, target: Path, limits: Limits, where: str) -> None:
        self.root, self.within, self.target, self.limits, self.where = root, within, target, limits, where
        self.names: list[tuple[tuple[str, ...], bool]] = []
        self.warnings: list[str] = []
        self.bytes = 0

    def folder(self, folder: Path, parts: tuple[str, ...]) -> None:
        for entry in sorted(os.scandir(folder), key=lambda e: e.name):
            if entry.name in SKIPPED and entry.is_dir(follow_symlinks=False):
                continue
            here = (*parts, entry.name)
            check_member("/".join(here), self.where)
            if entry.is_symlink():
                self.link(Path(entry.path), here)
            elif entry.is_dir(follow_symlinks=False):
                self._count(here, True)
                self.target.joinpath(*here).mkdir()
                self.folder(Path(entry.path), here)
            else:
                self.file(Path(entry.path), here)

    def link(self, path: Path, parts: tuple[str, ...]) -> None:
        real = Path(os.path.realpath(path))
        text = os.readlink(path)
        name = shown("/".join(parts))
        if not real.exists():
            self.warnings.append(f"the link {name} leads nowhere and is left out")
        elif real.is_relative_to(self.root) and not _loops(path, real):
            self._count(parts, False)
            relative = os.path.relpath(real, path.parent.resolve()) if os.path.isabs(text) else text
            os.symlink(relative, self.target.joinpath(*parts))
        elif self.within is not None and real.is_relative_to(self.within) and not self.root.is_relative_to(real):
            if real.is_dir():
                self._count(parts, True)
                self.target.joinpath(*parts).mkdir()
                self.folder(real, parts)
            else:
                self.file(real, parts)
        else:
            self.warnings.append(f"the link {name} leads out of the plugin and is left out")

    def file(self, path: Path, parts: tuple[str, ...]) -> None:
        try:
            source = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            raise ManagerError("unsafe-archive", f"{shown('/'.join(parts))} cannot be read: {error.strerror}",
                               context=self.where) from None
        with os.fdopen(source, "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode):
                raise ManagerError("unsafe-archive", f"{shown('/'.join(parts))} is no regular file", context=self.where)
            if info.st_mode & (stat.S_ISUID | stat.S_ISGID):
                raise ManagerError("unsafe-archive", f"{shown('/'.join(parts))} would run as another user (setuid or setgid)",
                                   context=self.where)
            self._count(parts, False)
            mode = 0o755 if info.st_mode & 0o111 else 0o644
            with os.fdopen(os.open(self.target.joinpath(*parts), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as out:
                while chunk := file.read(1 << 16):
                    self.bytes += len(chunk)
                    if self.bytes > self.limits.total_bytes:
                        raise ManagerError("unsafe-archive", f"is over {self.limits.total_bytes >> 20} MiB", context=self.where)
                    out.write(chunk)

    def _count(self, parts: tuple[str, ...], is_dir: bool) -> None:
        self.names.append((parts, is_dir))
        if len(self.names) > self.limits.files:
            raise ManagerError("unsafe-archive", f"holds over {self.limits.files} files", context=self.where)
        if len(parts) > 32:
            raise ManagerError("unsafe-archive", "is over 32 folders deep", context=self.where)


def _loops(path: Path, real: Path) -> bool:
    return path.parent.is_relative_to(real)


def strip(root: Path) -> None:
    """Remove folders that are no part of a plugin: compiled files in them would run without being in the digest."""
    import shutil

    for folder, names, _ in os.walk(root):
        for name in SKIPPED.intersection(names):
            shutil.rmtree(Path(folder, name))
            names.remove(name)


def digest(root: Path) -> str:
    """``sha256:…`` over every file's name, executable bit and content, and every link's target; times do not count."""
    total = hashlib.sha256()
    for parts, kind, content in sorted(files(root)):
        total.update(f"{parts}\0{kind}\0{content}\n".encode("utf-8", "surrogateescape"))
    return f"sha256:{total.hexdigest()}"


def files(root: Path) -> list[tuple[str, str, str]]:
    """(relative name, ``file`` ``exec`` or ``link``, SHA-256 of the content or the link's target) of every file."""
    found: list[tuple[str, str, str]] = []
    pending = [(str(root), "")]
    while pending:
        folder, prefix = pending.pop()
        for entry in os.scandir(folder):
            name = prefix + entry.name
            if entry.is_symlink():
                found.append((name, "link", os.readlink(entry.path)))
            elif entry.is_dir(follow_symlinks=False):
                pending.append((entry.path, f"{name}/"))
            elif prefix.endswith("__pycache__/") and (entry.name.endswith(".pyc") or ".pyc." in entry.name):
                continue  # Python's own, made when the plugin runs; a skill in a folder of that name would count
            elif entry.is_file(follow_symlinks=False):
                kind = "exec" if entry.stat(follow_symlinks=False).st_mode & 0o100 else "file"
                with open(entry.path, "rb") as file:
                    found.append((name, kind, hashlib.file_digest(file, "sha256").hexdigest()))
    return found
