"""Worktrees that nobody needs any more: of agents whose process is gone (subagents contract, 8.4)."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

from kernel_subagents.git import git, has_changes

if TYPE_CHECKING:
    from kernel import Session

DAYS = 30
_LOCK = re.compile(r"agent of process (\d+)")


async def sweep(root: Session, main: str, folder: str) -> None:
    """Release the locks of dead processes, and remove old worktrees of agents that hold no work."""
    done, listed = await git(main, "worktree", "list", "--porcelain")
    if not done:
        return
    days = root.settings.get("cleanupPeriodDays")
    oldest = time.time() - (days if isinstance(days, int) and not isinstance(days, bool) and days > 0 else DAYS) * 86_400
    for entry in listed.split("\n\n"):
        facts = dict(line.partition(" ")[::2] for line in entry.splitlines())
        path = facts.get("worktree", "")
        if os.path.dirname(path) != folder or not os.path.basename(path).startswith("agent-"):
            continue
        if "locked" in facts:
            owner = _LOCK.search(facts["locked"])
            if owner is None or _runs(int(owner[1])):
                continue
            await git(main, "worktree", "unlock", path)
        if os.path.isdir(path) and os.stat(path).st_mtime < oldest and not await _holds_work(path):
            await git(main, "worktree", "remove", path)  # without force: git looks once more
            branch = facts.get("branch", "").removeprefix("refs/heads/")
            if branch.startswith("worktree-agent-"):
                await git(main, "branch", "-D", branch)


async def _holds_work(path: str) -> bool:
    """Changes, new files, or commits that are nowhere else. What cannot be found out counts as work."""
    if await has_changes(path):
        return True
    elsewhere = ("--not", "--exclude=worktree-agent-*", "--branches", "--remotes")
    known, alone = await git(path, "log", "--format=%H", "-1", "HEAD", *elsewhere)
    return not known or bool(alone.strip())


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
