"""The folder that a task works in: made before the run, compared with what it was behind it, removed at the end.

Git is asked with everything switched off that a repository's configuration or a file of the workspace could make it run.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "advice.detachedHead=false",
         "-c", "commit.gpgSign=false")
MOST_FILES = 20_000
MOST_BYTES = 512 * 1024 * 1024


class WorkspaceError(Exception):
    """The workspace cannot be made. The text is for people."""


class Workspace(Struct, kw_only=True):
    """``source``: the task's folder. ``path``: where the workspace is made; beside it lie ``path.git`` and ``path.base``."""

    kind: str
    source: str
    path: str
    ref: str = "HEAD"

    @property
    def _base(self) -> Path:
        return Path(self.path + ".base")

    @property
    def _git(self) -> list[str]:
        own = ["--git-dir", self.path + ".git", "--work-tree", self.path] if self.kind == "copy" else ["-C", self.path]
        return ["git", *QUIET, *own]

    def prepare(self, *, keep: bool) -> tuple[str, list[str]]:
        """The folder to run in, and what is to be told. ``keep``: take the one that is there, if it is whole.

        :raises WorkspaceError: it cannot be made.
        """
        if self.kind == "none":
            return self.source, []
        top = _top(self.source) if self.kind == "worktree" else self.source
        inside = os.path.relpath(os.path.realpath(self.source), os.path.realpath(top))
        folder = os.path.normpath(os.path.join(self.path, inside))
        if keep and self._base.exists() and os.path.isdir(folder):
            return folder, []
        self.remove()
        Path(self.path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        told = self._worktree(top) if self.kind == "worktree" else self._copy()
        if not os.path.isdir(folder):
            raise WorkspaceError(f"{inside} is not in the commit {self.ref!r} of {top}")
        return folder, told

    def _worktree(self, top: str) -> list[str]:
        commit = _commit(top, self.ref)
        _run(["git", *QUIET, "-C", top, "worktree", "add", "--detach", "--quiet", self.path, commit], f"no worktree of {top}")
        self._base.write_text(commit, "utf-8")
        return []

    def _copy(self) -> list[str]:
        told = _copied(self.source, self.path)
        if shutil.which("git") is None:
            self._base.write_text("", "utf-8")
            return [*told, "git is not installed: no changes.patch"]
        _run(["git", *QUIET, "init", "--quiet", "--bare", self.path + ".git"], "git init failed")
        self._take_up()
        self._base.write_text(_run([*self._git, "write-tree"], "the files cannot be taken up").strip(), "utf-8")
        return told

    def _take_up(self) -> None:
        _run([*self._git, "add", "--all", *(["--force", "."] if self.kind == "copy" else [])], "the files cannot be taken up")

    def patch(self, target: Path) -> int:
        """Write what has changed since the workspace was made as a git patch; its size in bytes. Nothing is written where
        nothing changed.

        :raises WorkspaceError: git could not say.
        """
        base = self._base.read_text("utf-8") if self.kind != "none" and self._base.exists() else ""
        if not base:
            return 0
        self._take_up()
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            asked = ["diff", "--binary", "--no-ext-diff", "--no-textconv", "--no-color", "--cached", base]
            done = subprocess.run([*self._git, *asked], stdout=file,  # noqa: S603  # an argument list, fixed program
                                  stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
        size = target.stat().st_size
        if not size:
            target.unlink()
        if done.returncode:
            raise WorkspaceError(f"git diff failed: {done.stderr.decode('utf-8', 'replace').strip()[:300]}")
        return size

    def remove(self) -> None:
        """Take the workspace away, whatever is left of it. Never raises."""
        if self.kind == "none":
            return
        if self.kind == "worktree" and os.path.isdir(self.path):
            with suppress(WorkspaceError):
                _run(["git", *QUIET, "-C", self.source, "worktree", "remove", "--force", "--force", self.path], "")
        for path in (self.path, self.path + ".git"):
            if os.path.isdir(path):
                shutil.rmtree(path, onerror=_writable)
        with suppress(OSError):
            self._base.unlink()


def choose(cwd: str) -> str:
    """``worktree`` in a repository with a commit, else ``copy``."""
    try:
        _run(["git", *QUIET, "-C", cwd, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"], "")
    except WorkspaceError:
        return "copy"
    return "worktree"


def is_changed(cwd: str) -> bool:
    """Whether the repository holds changes that no worktree will have."""
    try:
        return bool(_run(["git", *QUIET, "-C", cwd, "status", "--porcelain", "--untracked-files=no"], "").strip())
    except WorkspaceError:
        return False


@cache
def _commit(top: str, ref: str) -> str:
    """Asked once by each process: the tasks of a fleet begin with the same commit."""
    asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"]
    return _run(["git", *QUIET, "-C", top, *asked], f"{ref!r} is no commit of {top}").strip()


@cache
def _top(folder: str) -> str:
    return _run(["git", *QUIET, "-C", folder, "rev-parse", "--show-toplevel"], f"{folder} is in no git repository").rstrip("\n")


def _run(command: list[str], what: str) -> str:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603  # git alone
    except FileNotFoundError:
        raise WorkspaceError("git is not installed, and a worktree needs it; \"workspace\": \"copy\" does not") from None
    if done.returncode:
        raise WorkspaceError(f"{what}: {done.stderr.decode('utf-8', 'replace').strip()[:300]}".removesuffix(": "))
    return done.stdout.decode("utf-8", "surrogateescape")


def _copied(source: str, target: str) -> list[str]:
    """Copy a folder within bounds. Links are copied as links where they stay inside; others, sockets and devices are left out."""
    files = size = 0
    left: list[str] = []
    root = os.path.realpath(source)
    os.mkdir(target, 0o700)
    for folder, folders, names in os.walk(source):
        place = os.path.normpath(os.path.join(target, os.path.relpath(folder, source)))
        for name in [*folders, *names]:
            path, copy = os.path.join(folder, name), os.path.join(place, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                aim = os.path.realpath(path)
                if not os.path.isabs(os.readlink(path)) and os.path.commonpath([root, aim]) == root:
                    os.symlink(os.readlink(path), copy)
                else:
                    left.append(os.path.relpath(path, source))
            elif stat.S_ISDIR(mode):
                os.mkdir(copy, 0o700)
            elif stat.S_ISREG(mode):
                files, size = files + 1, size + os.lstat(path).st_size
                if files > MOST_FILES or size > MOST_BYTES:
                    raise WorkspaceError(f"{source} holds more than {MOST_FILES} files or {MOST_BYTES >> 20} MB: "
                                         "too much to copy for each task; a git worktree or \"workspace\": \"none\" is for that")
                shutil.copy2(path, copy, follow_symlinks=False)
            else:
                left.append(os.path.relpath(path, source))
    return [f"left out of the copy (links to the outside, or no files): {', '.join(left[:5])}"
            + (f" and {len(left) - 5} more" if len(left) > 5 else "")] if left else []


def _writable(function: Any, path: str, _: Any) -> None:
    with suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)
        os.chmod(path, 0o700)
        function(path)
