"""Directories that a project's version control does not look at: skills are not taken from there."""

from __future__ import annotations

import os
import subprocess

NAMES = frozenset(("node_modules", ".git", ".venv", "venv", "__pycache__"))


def is_ignored(folder: str, root: str) -> bool:
    """Whether git ignores the folder; where there is no git or no repository, only well-known names count."""
    if NAMES.intersection(os.path.relpath(folder, root).split(os.sep)):
        return True
    try:
        done = subprocess.run(  # noqa: S603  # a fixed command; the folder is one argument
            ["git", "-c", "core.fsmonitor=false", "check-ignore", "-q", "--", folder],  # noqa: S607  # the person's own git
            cwd=root, stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
