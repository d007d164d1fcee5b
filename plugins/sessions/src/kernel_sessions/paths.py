"""Where transcripts lie, and what the file system says about a directory (sessions contract, section 1).

Nothing here runs a program: worktrees and branches are read from the files that git keeps.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from kernel import config_dir, git_root

MAX_NAME = 200
"""Characters of a project name before it is cut and gets a hash."""

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_FIXED_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OTHER = re.compile(r"[^A-Za-z0-9]")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def is_session_id(text: str) -> bool:
    return _UUID.fullmatch(text) is not None


def nfc(text: str) -> str:
    """The text in Unicode NFC, so that a name typed on one system is found on another."""
    if text.isascii():
        return text
    import unicodedata

    return unicodedata.normalize("NFC", text)


def config_home() -> Path:
    return Path(nfc(str(config_dir())))


def projects_dir() -> Path:
    return config_home() / "projects"


def real(directory: str) -> str:
    """The directory with links resolved, in NFC: the name under which a project is filed."""
    return nfc(os.path.realpath(directory))


def project_name(directory: str) -> str:
    """The folder name of a working directory's sessions."""
    path = real(directory)
    plain = _OTHER.sub("-", path)
    return plain if len(plain) <= MAX_NAME else f"{plain[:MAX_NAME]}-{_hash(path)}"


def project_dir(directory: str) -> Path:
    """Where new sessions of the directory go.

    ``CLAUDE_CODE_PROJECT_DIR_NAME`` replaces the computed name, but only together with ``CLAUDE_CONFIG_DIR``; a value
    of another form is ignored. (The settings loader keeps settings files from setting it.)
    """
    given = os.environ.get("CLAUDE_CODE_PROJECT_DIR_NAME", "")
    if os.environ.get("CLAUDE_CONFIG_DIR") and _FIXED_NAME.fullmatch(given):
        return projects_dir() / given
    return projects_dir() / project_name(directory)


def reading_dirs(directory: str, *, own: bool = True) -> list[Path]:
    """The folders that may hold the directory's sessions, the one we write to first.

    Of a long path only the first part of the name is certain, since others hash the rest differently. A folder that was
    found that way may belong to a neighbour; the entries' ``cwd`` tells.

    :param own: false for another directory than the session's: a fixed project name is not for that one.
    """
    mine = project_dir(directory) if own else projects_dir() / project_name(directory)
    dirs = [mine]
    plain = _OTHER.sub("-", real(directory))
    if len(plain) > MAX_NAME:
        dirs += [d for d in all_projects() if d != mine and d.name.startswith(f"{plain[:MAX_NAME]}-")]
    return dirs


def all_projects() -> list[Path]:
    try:
        return sorted(p for p in projects_dir().iterdir() if p.is_dir())
    except OSError:
        return []


def transcripts(project: Path) -> Iterator[tuple[Path, int]]:
    """The session files of one project folder with their modification time (ns); empty files count as absent."""
    try:
        entries = list(os.scandir(project))
    except OSError:
        return
    for entry in entries:
        stem, dot, suffix = entry.name.rpartition(".")
        if suffix != "jsonl" or not dot or not is_session_id(stem):
            continue
        try:
            state = entry.stat()
        except OSError:
            continue
        if state.st_size and entry.is_file():
            yield Path(entry.path), state.st_mtime_ns


def _hash(text: str) -> str:
    """A 32-bit hash as the public readers compute it, in base 36."""
    value = 0
    for character in text:
        value = ((value << 5) - value + ord(character)) & 0xFFFFFFFF
    value = abs(value - (1 << 32) if value & 0x80000000 else value)
    digits = ""
    while True:
        value, rest = divmod(value, 36)
        digits = _DIGITS[rest] + digits
        if not value:
            return digits


def make_private(directory: Path) -> None:
    """Make the directory and its missing parents, readable by the owner alone."""
    missing: list[Path] = []
    while not directory.is_dir():
        missing.append(directory)
        directory = directory.parent
    for place in reversed(missing):
        place.mkdir(mode=0o700, exist_ok=True)


# -- git, read from its files -----------------------------------------------------------------------------------------
def git_branch(directory: str) -> str:
    """The branch that is checked out, ``HEAD`` where none is, an empty string outside a repository."""
    root = git_root(Path(directory))
    place = _git_dir(root) if root else None
    head = _first_line(place / "HEAD") if place else ""
    if not head:
        return ""
    reference = head.removeprefix("ref: ")
    return reference.removeprefix("refs/heads/") if reference != head else "HEAD"


def worktrees(directory: str) -> list[str]:
    """The roots of all worktrees of the directory's repository, the main one included; empty outside a repository."""
    root = git_root(Path(directory))
    place = _git_dir(root) if root else None
    if root is None or place is None:
        return []
    shared = _first_line(place / "commondir")
    common = Path(os.path.normpath(place / shared)) if shared else place
    roots = [root]
    if common.name == ".git":
        roots.append(common.parent)
    for link in sorted(common.glob("worktrees/*/gitdir")):
        target = _first_line(link)
        if target:
            roots.append(Path(os.path.normpath(link.parent / target)).parent)
    return list(dict.fromkeys(str(r) for r in roots))


def _git_dir(root: Path) -> Path | None:
    """Where the repository's HEAD lies: ``.git`` itself, or what the file ``.git`` of a worktree points to."""
    place = root / ".git"
    if place.is_dir():
        return place
    line = _first_line(place)
    target = line.removeprefix("gitdir: ")
    return root / target if target != line else None


def _first_line(path: Path) -> str:
    try:
        with path.open("r", encoding="utf-8", errors="surrogateescape") as file:
            return file.readline(8192).strip()
    except OSError:
        return ""
