"""What lies in a plugin folder: one bounded walk that follows no link."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct, field

MAX_ENTRIES = 50_000
MAX_DEPTH = 40
SKIPPED = frozenset((".git", "node_modules", "__pycache__", ".venv", "venv", ".mypy_cache", ".ruff_cache", ".pytest_cache",
                     ".hypothesis"))


class Tree(Struct):
    """Relative posix paths by kind. ``stopped`` says why the walk ended early, if it did."""

    root: Path
    files: dict[str, os.DirEntry[str]] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    stopped: str = ""

    def under(self, folder: str) -> list[str]:
        prefix = f"{folder}/"
        return [path for path in self.files if path.startswith(prefix)]


def walk(root: Path) -> Tree:
    """Read the folder. Unreadable folders are left out; devices, sockets and named pipes are listed as ``odd``."""
    tree = Tree(root)
    pending = [("", 0)]
    count = 0
    while pending:
        rel, depth = pending.pop()
        try:
            with os.scandir(root / rel if rel else root) as found:
                entries = sorted(found, key=lambda e: e.name)
        except OSError:
            continue
        for entry in entries:
            count += 1
            if count > MAX_ENTRIES:
                tree.stopped = f"more than {MAX_ENTRIES:,} files and folders"
                return tree
            path = f"{rel}/{entry.name}" if rel else entry.name
            try:
                if entry.is_symlink():
                    tree.links.append(path)
                elif entry.is_dir(follow_symlinks=False):
                    if entry.name in SKIPPED:
                        continue
                    tree.folders.append(path)
                    if depth >= MAX_DEPTH:
                        tree.stopped = tree.stopped or f"folders nested more than {MAX_DEPTH} deep"
                    else:
                        pending.append((path, depth + 1))
                elif entry.is_file(follow_symlinks=False):
                    tree.files[path] = entry
                else:
                    tree.odd.append(path)
            except OSError:
                tree.odd.append(path)
    return tree


def within(path: Path, *roots: Path) -> bool:
    """Whether a path, all links followed, lies inside one of the folders. Loops and unreadable paths do not."""
    try:
        real = Path(os.path.realpath(path))
        return any(real == (base := Path(os.path.realpath(root))) or base in real.parents for root in roots)
    except (OSError, ValueError, RuntimeError):
        return False
