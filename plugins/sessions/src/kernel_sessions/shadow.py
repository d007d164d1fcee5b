"""What a command changed in the workspace, as git sees it: the tree before against the tree after.

The workspace's own repository is only asked for objects that it has already. Index, new objects and configuration lie beside
the session's checkpoints, so nothing of the repository changes, no hook runs, and no filter or setting of it counts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from kernel import git_root
from kernel_sessions.paths import make_private

MOST_FILES = 20_000
MOST_BYTES = 256 * 1024 * 1024
LARGEST = 8 * 1024 * 1024
"""Bytes of a file whose changes by commands are followed."""
PATIENCE_S = 20.0
RAW = "* -text -eol -crlf -filter -ident -working-tree-encoding -diff -merge\n"


class NotCovered(Exception):
    """Why commands are not followed here."""


class Shadow:
    """A second view on the worktree around ``cwd``. All calls block.

    :param folder: where index and objects go.
    :raises NotCovered: no git, no worktree, or too much in it.
    """

    def __init__(self, folder: Path, cwd: str) -> None:
        git, root = shutil.which("git"), git_root(Path(cwd))
        if git is None or root is None:
            raise NotCovered("there is no git repository" if git else "git is not installed")
        self.root = Path(os.path.realpath(root))
        self.folder = folder
        self._git = git
        self._dir = folder / "worktree.git"
        self._env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C",
                     "GIT_DIR": str(self._dir), "GIT_WORK_TREE": str(self.root), "GIT_OPTIONAL_LOCKS": "0",
                     "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        self._begin()

    def _begin(self) -> None:
        make_private(self._dir.parent)
        self._run("init", "-q", "--bare", str(self._dir), work_tree=False)
        real = self._ask_real("rev-parse", "--git-common-dir")
        (self._dir / "info").mkdir(exist_ok=True)
        (self._dir / "info" / "attributes").write_text(RAW)
        if real:
            common = (self.root / os.fsdecode(real)).resolve()
            (self._dir / "objects" / "info").mkdir(parents=True, exist_ok=True)
            (self._dir / "objects" / "info" / "alternates").write_bytes(os.fsencode(common / "objects") + b"\n")
            exclude = common / "info" / "exclude"
            if exclude.is_file():
                shutil.copyfile(exclude, self._dir / "info" / "exclude")

    def tree(self) -> str:
        """The id of the tree that the worktree is now; files that git ignores are not in it.

        :raises NotCovered: too much, or git failed.
        """
        excluded: list[str] = []
        count = size = 0
        for name in self._run("ls-files", "-z", "--others", "--modified", "--exclude-standard").split(b"\0"):
            if not name:
                continue
            try:
                bytes_ = os.lstat(os.path.join(os.fsencode(self.root), name)).st_size
            except OSError:
                continue
            count, size = count + 1, size + bytes_
            if bytes_ > LARGEST:
                excluded.append(f":(exclude,top,literal){os.fsdecode(name)}")
                size -= bytes_
        if count > MOST_FILES or size > MOST_BYTES:
            raise NotCovered(f"the worktree {self.root} is too large ({count:,} files, {size:,} bytes)")
        self._run("add", "-A", "--ignore-errors", "--", ":/", *excluded, may_fail=True)
        return self._run("write-tree").decode().strip()

    def changed(self, before: str, after: str) -> dict[str, bytes | None]:
        """Absolute path -> content before, of every plain file that differs; ``None`` where there was none."""
        if before == after:
            return {}
        fields = self._run("diff-tree", "-r", "-z", "--no-renames", "--raw", before, after).split(b"\0")
        found: dict[str, bytes | None] = {}
        for head, name in zip(fields[::2], fields[1::2], strict=False):
            mode, mode_after, blob, *_ = head.lstrip(b":").split()
            plain = (b"100644", b"100755", b"000000")
            if mode in plain and mode_after in plain:
                path = os.path.join(str(self.root), os.fsdecode(name))
                found[path] = None if mode == b"000000" else self._run("cat-file", "blob", blob.decode())
        return found

    def _ask_real(self, *args: str) -> bytes:
        """A question to the workspace's own repository; empty where it does not answer."""
        env = {k: v for k, v in self._env.items() if k not in ("GIT_DIR", "GIT_WORK_TREE")}
        done = subprocess.run([self._git, *args], cwd=self.root, env=env, capture_output=True, timeout=PATIENCE_S, check=False)  # noqa: S603
        return done.stdout.strip() if done.returncode == 0 else b""

    def _run(self, *args: str, work_tree: bool = True, may_fail: bool = False) -> bytes:
        env = self._env if work_tree else {k: v for k, v in self._env.items() if k not in ("GIT_WORK_TREE", "GIT_DIR")}
        try:
            done = subprocess.run([self._git, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c",  # noqa: S603
                                   "core.autocrlf=false", "-c", "core.bare=false", *args], cwd=self.root, env=env,
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotCovered(f"git {args[0]} failed: {error}") from error
        if done.returncode and not may_fail:
            raise NotCovered(f"git {args[0]} failed: {done.stderr.decode('utf-8', 'replace').strip()[:200]}")
        return done.stdout
