"""A checkout of an agent's own (subagents contract, section 8)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel import ToolError, WorktreeCreate, WorktreeRemove, git_root
from kernel_subagents.fence import Fence
from kernel_subagents.git import git, has_changes
from kernel_subagents.sweep import sweep

if TYPE_CHECKING:
    from kernel import Session

FOLDER = ".claude/worktrees"


class Worktree:
    """``branch`` is empty for one that a hook made. ``kept``: it holds work, so it stays."""

    def __init__(self, path: str, main: str, branch: str = "", base: str = "") -> None:
        self.path = path
        self.main = main
        self.branch = branch
        self.base = base
        self.kept = False

    def fence(self) -> Fence:
        """What keeps the agent out of the main checkout."""
        return Fence(self.path, self.main)

    async def enter(self) -> None:
        """Lock it, so that nothing removes it while the agent is at work."""
        if self.branch:
            await git(self.main, "worktree", "lock", "--reason", f"agent of process {os.getpid()}", self.path)

    async def leave(self, root: Session) -> None:
        """The agent ended: without work in it it goes, and its branch too."""
        if not self.branch:
            await self._leave_to_hook(root)
            return
        await git(self.main, "worktree", "unlock", self.path)
        if await self._has_work():
            self.kept = True
            return
        self.kept = False
        removed, said = await git(self.main, "worktree", "remove", "--force", self.path)
        if removed:
            await git(self.main, "branch", "-D", self.branch)
        else:
            root.notice(f"the worktree {self.path} cannot be removed: {said}")

    async def _has_work(self) -> bool:
        """Changed or new files, or commits. What cannot be found out counts as work."""
        if await has_changes(self.path):
            return True
        same, head = await git(self.path, "rev-parse", "HEAD")
        return not same or head.strip() != self.base

    async def _leave_to_hook(self, root: Session) -> None:
        await root.fire(root.make(WorktreeRemove, worktree_path=self.path))
        self.kept = os.path.isdir(self.path)

    def told(self) -> str:
        """Where the work is, for the parent."""
        if not self.kept:
            return ""
        branch = f" on the branch {self.branch}" if self.branch else ""
        return f"The agent's changes are in the worktree {self.path}{branch}.\n"


async def create(session: Session, slug: str) -> Worktree:
    """A worktree for an agent of that session: a hook's, or one of git.

    :raises ToolError: there is no repository and no hook, or it cannot be made.
    """
    root = session.root
    top = git_root(Path(session.project_root))
    made = await _by_hook(root, slug, str(top or session.project_root))
    if made is not None:
        return made
    if top is None:
        raise ToolError("no_worktree", f"{session.project_root} is in no git repository, and no WorktreeCreate hook makes a "
                                       "worktree. Start the agent without isolation.")
    main, branch = str(top), f"worktree-{slug}"
    await _refuse_filters(root, main)
    path = os.path.join(main, FOLDER, slug)
    base = await _base(root, main)
    _safe_parent(main)
    await sweep(root, os.path.realpath(main), os.path.join(os.path.realpath(main), FOLDER))
    done, said = await git(main, "worktree", "add", "-b", branch, path, base)
    if not done:
        raise ToolError("no_worktree", f"The worktree cannot be made: {said[:2000]}")
    tree = Worktree(os.path.realpath(path), os.path.realpath(main), branch, (await git(path, "rev-parse", "HEAD"))[1].strip())
    await tree.enter()
    await _include(main, tree.path)
    return tree


async def adopt(session: Session, path: str) -> Worktree:
    """The worktree that an agent of an earlier process left. It is kept at the end: what it began with is not known any more."""
    root = session.root
    main = os.path.realpath(str(git_root(Path(root.project_root)) or root.project_root))
    found, branch = await git(path, "branch", "--show-current")
    tree = Worktree(os.path.realpath(path), main, branch.strip() if found else "")
    if tree.branch:
        await tree.enter()
    return tree


async def _by_hook(root: Session, slug: str, main: str) -> Worktree | None:
    """What a WorktreeCreate hook made; ``None`` where there is none.

    :raises ToolError: it failed, or its path cannot be used.
    """
    merged = await root.fire(root.make(WorktreeCreate, name=slug))
    if merged.blocked or merged.failures:
        why = merged.block_reason or "; ".join(t.text for t in merged.failures)
        raise ToolError("no_worktree", f"A WorktreeCreate hook failed: {why}")
    given = merged.last.get("worktree_path")
    if not given:
        return None
    path = os.path.join(main, str(given))
    if os.path.isabs(str(given)) and any(part in (".", "..") for part in str(given).split("/")):
        raise ToolError("no_worktree", f"The WorktreeCreate hook gave {given!r}: an absolute path must hold no '.' or '..'.")
    inside = os.path.normpath(path)
    below = inside.removeprefix(main + os.sep)
    if below != inside and os.path.realpath(inside) != os.path.join(os.path.realpath(main), below):
        raise ToolError("no_worktree", f"The WorktreeCreate hook gave {given!r}, which passes through a link.")
    if not os.path.isdir(inside) or not os.access(inside, os.X_OK):
        raise ToolError("no_worktree", f"The WorktreeCreate hook gave {given!r}, which is no directory that can be entered.")
    return Worktree(os.path.realpath(inside), os.path.realpath(main))


async def _base(root: Session, main: str) -> str:
    """Where the branch begins: the remote's default branch, or the current commit (``worktree.baseRef``: ``head``)."""
    setting: Any = root.settings.get("worktree.baseRef")
    if setting != "head":
        found, said = await git(main, "rev-parse", "--verify", "--quiet", "refs/remotes/origin/HEAD^{commit}")
        if found and said.strip():
            return said.strip()
    return "HEAD"


async def _refuse_filters(root: Session, main: str) -> None:
    """A checkout runs the programs that the repository's own configuration names as filters.

    :raises ToolError: there are such, and nobody trusted the workspace.
    """
    if root.settings.trusted:
        return
    named, said = await git(main, "config", "--local", "--includes", "--name-only", "--get-regexp", r"^filter\.")
    if named:
        raise ToolError("no_worktree", f"{main} configures filters ({said.split()[0][:100]}), which a checkout would run, and "
                                       "this workspace is not trusted. Start the agent without isolation.")


def _safe_parent(main: str) -> None:
    """:raises ToolError: the folder for worktrees leads out of the repository."""
    folder = os.path.join(main, FOLDER)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise ToolError("no_worktree", f"{folder} cannot be made: {error.strerror or error}") from None
    if os.path.realpath(folder) != os.path.join(os.path.realpath(main), FOLDER):
        raise ToolError("no_worktree", f"{folder} passes through a link, so no worktree is made there.")


async def _include(main: str, path: str) -> None:
    """Copy the ignored files that ``.worktreeinclude`` names (gitignore patterns)."""
    patterns = os.path.join(main, ".worktreeinclude")
    if not os.path.isfile(patterns):
        return
    _, wanted = await git(main, "ls-files", "-z", "--others", "--ignored", f"--exclude-from={patterns}")
    _, ignored = await git(main, "ls-files", "-z", "--others", "--ignored", "--exclude-standard")
    for name in set(wanted.split("\0")) & set(ignored.split("\0")) - {""}:
        source, target = os.path.join(main, name), os.path.join(path, name)
        if name.startswith(FOLDER) or os.path.islink(source) or not os.path.isfile(source) or os.path.lexists(target):
            continue
        if not os.path.realpath(target).startswith(path + os.sep):
            continue  # a folder on the way is a link out of the worktree
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(source, target)
        except OSError:
            continue
