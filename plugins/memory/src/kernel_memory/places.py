"""Where instruction files lie (context contract, 2.1): names only, nothing is read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from kernel import git_root
from kernel_memory import switches
from kernel_memory.files import Kind

if TYPE_CHECKING:
    from kernel import Session


class Place(Struct, frozen=True):
    """Files in load order, or one folder of rules. ``root`` is what the patterns of its rules are relative to."""

    kind: Kind
    files: tuple[str, ...] = ()
    rules: str = ""
    root: str = ""


def of_session(session: Session) -> Iterator[Place]:
    """What is loaded at the start, in order; auto memory is not among it."""
    settings, start = session.settings, session.project_root
    managed = settings.managed_dir
    yield Place("Managed", (os.path.join(managed, "CLAUDE.md"),))
    yield Place("Managed", rules=os.path.join(managed, ".claude", "rules"), root=start)
    config = str(settings.config_dir)
    if switches.source(session, "user"):
        yield Place("User", (os.path.join(config, "CLAUDE.md"),))
        yield Place("User", rules=os.path.join(config, "rules"), root=start)
    for folder in _above(start):
        yield from of_folder(session, folder)
    if switches.is_on("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD"):
        for added in session.options.add_dirs:
            yield from of_folder(session, str(added))


def of_folder(session: Session, folder: str) -> Iterator[Place]:
    """What one directory of the project has: the project's files, its rules, the local file."""
    claude = os.path.join(folder, ".claude")
    own = os.path.realpath(claude) == os.path.realpath(session.settings.config_dir)  # the home directory is no project
    if switches.source(session, "project"):
        files = [os.path.join(folder, "CLAUDE.md"), *([] if own else [os.path.join(claude, "CLAUDE.md")])]
        if switches.agents_md(session) and not any(map(os.path.lexists, files)):
            files = [os.path.join(folder, "AGENTS.md")]
        yield Place("Project", tuple(files))
        if not own:
            yield Place("Project", rules=os.path.join(claude, "rules"), root=folder)
    if switches.source(session, "local"):
        yield Place("Local", (os.path.join(folder, "CLAUDE.local.md"),))


def _above(start: str) -> list[str]:
    """From the root of the file system down to the start directory.

    Of a linked worktree that lies inside its main repository, the main repository's folders are left out: they hold the
    files that the worktree has itself.
    """
    here = Path(start)
    root = git_root(here)
    main = main_root(root) if root is not None else None
    folders = [*reversed(here.parents), here]
    if root is not None and main is not None and main != root and root.is_relative_to(main):
        folders = [f for f in folders if f.is_relative_to(root) or not f.is_relative_to(main)]
    return [str(f) for f in folders]


def between(session: Session, path: str) -> list[str]:
    """The directories below the start directory down to a file's own, outer ones first; empty for a file elsewhere."""
    start = os.path.realpath(session.project_root)
    folder = os.path.dirname(os.path.realpath(path))
    found: list[str] = []
    while folder.startswith(start.rstrip(os.sep) + os.sep):
        found.append(folder)
        folder = os.path.dirname(folder)
    return found[::-1]


def main_root(root: Path) -> Path:
    """The root of the main worktree of a repository; of a submodule or an odd layout the root itself."""
    link = root / ".git"
    if not link.is_file():
        return root
    target = first_line(link).removeprefix("gitdir: ")
    shared = first_line(root / target / "commondir") if target else ""
    common = Path(os.path.normpath(root / target / shared)) if shared else None
    return common.parent if common is not None and common.name == ".git" else root


def first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            return file.readline(8_192).strip()
    except OSError:
        return ""
