"""What can stand behind ``/`` and ``@``: commands with what they do, files of the folder."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from kernel_terminal.lines import cut
from kernel_terminal.safe import one_line

MOST = 40
MOST_FILES = 50_000
FRESH_S = 10.0
GIT_S = 3.0
WALK_S = 1.0
SKIPPED = frozenset((".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".mypy_cache", ".pytest_cache",
                     ".ruff_cache", "target", "dist", "build"))
_COMMAND = re.compile(r"\s*/([^\s/]*)$")
_PATH = re.compile(r"(?<![\w@`/.])@(?:\"([^\"\n]*)|([^\s`\"'<>|@,;()\[\]{}]*))$")


class Found(Struct):
    """``start``: how many characters before the cursor it takes the place of."""

    start: int
    text: str
    shown: str
    detail: str = ""


def found(before: str, commands: Mapping[str, str], files: Callable[[], Iterable[str]]) -> list[Found]:
    """:param before: the text in front of the cursor. ``commands``: name -> what it does."""
    if match := _COMMAND.match(before):
        typed = match[1]
        return [Found(len(typed), f"{name} ", f"/{name}", cut(one_line(commands[name]), 90))
                for name in ranked(typed, commands)][:MOST]
    if match := _PATH.search(before):
        quoted = match[1] is not None
        typed = match[1] if quoted else match[2]
        names = ranked(typed, files())
        # what is typed is replaced with the sign in front, since the name may need quotes
        return [Found(len(typed) + (2 if quoted else 1), _mention(name), cut(one_line(name), 90)) for name in names]
    return []


def _mention(name: str) -> str:
    plain_name = re.fullmatch(r"[^\s`\"'<>|@,;()\[\]{}]+", name) is not None
    end = "" if name.endswith("/") else " "
    return f"@{name}{end}" if plain_name else f'@"{name}"{end}'


def ranked(typed: str, names: Iterable[str]) -> list[str]:
    """The names that hold the typed characters in order; those that begin with them first, then those whose last part does."""
    wanted = typed.lower()
    rows: list[tuple[int, int, str]] = []
    for name in names:
        low = name.lower()
        base = low.rstrip("/").rpartition("/")[2]
        if low.startswith(wanted):
            rank = 0
        elif base.startswith(wanted):
            rank = 1
        elif wanted in low:
            rank = 2
        elif len(wanted) > 1 and _in_order(wanted, low):
            rank = 3
        else:
            continue
        rows.append((rank, len(name), name))
    rows.sort()
    return [name for _, _, name in rows[:MOST]]


def _in_order(wanted: str, name: str) -> bool:
    place = -1
    for character in wanted:
        place = name.find(character, place + 1)
        if place < 0:
            return False
    return True


class Files:
    """The files and folders below a folder, as paths relative to it: what git knows and does not ignore, or what a walk finds.
    Bounded in number and time; looked up again when it is no longer fresh."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._names: list[str] = []
        self._looked = -FRESH_S

    def __call__(self) -> list[str]:
        """Blocks for at most some seconds; to be called in a thread."""
        if time.monotonic() - self._looked >= FRESH_S:
            names = self._of_git()
            names = self._walked() if names is None else names
            folders = {f"{parent}/" for name in names for parent in _parents(name)}
            self._names = sorted(folders | set(names))[:MOST_FILES]
            self._looked = time.monotonic()
        return self._names

    def _of_git(self) -> list[str] | None:
        try:
            done = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=self._root,  # noqa: S607
                                  capture_output=True, timeout=GIT_S, check=False, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.SubprocessError):
            return None
        if done.returncode:
            return None
        return [_readable(raw) for raw in done.stdout.split(b"\0")[:MOST_FILES] if raw]

    def _walked(self) -> list[str]:
        names: list[str] = []
        until = time.monotonic() + WALK_S
        for folder, folders, files in os.walk(self._root):
            folders[:] = sorted(f for f in folders if f not in SKIPPED)
            inside = os.path.relpath(folder, self._root)
            names += [_readable(os.fsencode(name if inside == "." else f"{inside}/{name}")) for name in files]
            if len(names) >= MOST_FILES or time.monotonic() > until:
                break
        return names


def _readable(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _parents(name: str) -> list[str]:
    return [str(p) for p in Path(name).parents if str(p) != "."]


def described(commands: Mapping[str, Any]) -> dict[str, str]:
    """Name -> description of typed commands, hidden ones left out."""
    out = {}
    for name, command in commands.items():
        if not getattr(command, "hidden", False):
            hint = str(getattr(command, "argument_hint", "") or "")
            told = str(getattr(command, "description", "") or "")
            out[name] = f"{hint}  {told}" if hint else told
    return out
