"""Git, run for worktrees."""

from __future__ import annotations

import os
import subprocess

SECONDS = 120.0
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
"""No program that the repository's configuration names is run beside."""


async def git(cwd: str, *args: str) -> tuple[bool, str]:
    """Run git in a directory: whether it worked, and what it said. Never asks for anything."""
    import anyio.to_thread

    env = {k: v for k, v in os.environ.items() if k not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")}

    def run() -> tuple[bool, str]:
        try:
            done = subprocess.run(["git", *_QUIET, *args], cwd=cwd,  # noqa: S603, S607  # a fixed program
                                  capture_output=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
                                  env={**env, "GIT_TERMINAL_PROMPT": "0"})
        except (OSError, subprocess.TimeoutExpired) as error:
            return False, str(error)
        said = done.stdout if done.returncode == 0 else done.stderr
        return done.returncode == 0, said.decode("utf-8", "replace")

    return await anyio.to_thread.run_sync(run)


async def has_changes(path: str) -> bool:
    """Whether a checkout holds changed or new files. What cannot be found out counts as one."""
    known, said = await git(path, "status", "--porcelain", "--untracked-files=all")
    return not known or bool(said.strip())
