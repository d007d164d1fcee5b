"""What stays read-only although it lies in a writable place: files that other programs run by themselves.

The names are those of the permissions contract, section 8. A command that can write ``.git/hooks`` or
``.claude/settings.json`` runs whatever it likes outside, a moment later.

Everything here is looked up once, before the first command runs: paths that a confined command made itself are never
used as the source of a mount, since it could exchange them for a link meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct, field

FOLDERS = frozenset(".vscode .idea .husky .cargo .devcontainer .yarn .mvn .claude .claude-plugin".split())
FILES = frozenset((
    ".gitconfig .gitmodules .bashrc .bash_profile .bash_login .bash_aliases .bash_logout .zshrc .zprofile .zshenv .zlogin "
    ".zlogout .profile .envrc .npmrc .yarnrc .yarnrc.yml .pnp.cjs .pnp.loader.mjs .pnpmfile.cjs bunfig.toml .bunfig.toml "
    ".bazelrc .bazelversion .bazeliskrc .pre-commit-config.yaml lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml "
    "gradle-wrapper.properties maven-wrapper.properties .devcontainer.json .ripgreprc pyrightconfig.json .mcp.json "
    ".claude.json").split())
DEPTH = 3
"""How many levels of a writable place are searched: the place itself, and two below it."""
MAX_ENTRIES = 50_000
_DEPENDENCIES = frozenset("node_modules .venv venv site-packages vendor target dist build __pycache__ .tox .nox .git".split())
"""Folders that are installed and built, not edited: protecting parts of them would break the installer."""


class Protection(Struct):
    """``kept``: read-only. ``free``: writable inside of what is kept. ``repositories``: git's own folders, writable but for
    what is kept of them. ``absent``: names at the top of working directories that were not there."""

    kept: list[str] = field(default_factory=list)
    free: list[str] = field(default_factory=list)
    repositories: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    """Empty folders that were made to be covered; removed at the end where they are still empty."""

    def add(self, more: Protection) -> None:
        self.kept += more.kept
        self.free += more.free
        self.repositories += more.repositories
        self.absent += more.absent
        self.made += more.made

    def release(self) -> None:
        for path in reversed(self.made):
            try:
                os.rmdir(path)
            except OSError:
                pass  # it has a use now
        self.made.clear()


def protect(work: Iterable[str], writable: Iterable[str], own: Iterable[str]) -> Protection:
    """Find what has to be protected.

    :param work: the working directories. :param writable: other writable places. Both resolved and existing.
    :param own: folders of the harness itself.
    """
    found = Protection()
    work = list(work)
    for root in work:
        _folder_for(root, ".claude", found)
        _search(root, found)
        found.absent += [p for name in sorted(FILES | FOLDERS) if not os.path.lexists(p := os.path.join(root, name))]
        _repository_above(root, found)
    for root in writable:
        _search(root, found)
    found.kept += [str(p) for p in own if os.path.exists(p)]
    return found


def _folder_for(root: str, name: str, found: Protection) -> None:
    """Make an empty folder where none is: only what exists can be covered by a mount."""
    path = os.path.join(root, name)
    try:
        os.mkdir(path)
    except OSError:
        return  # it is there, or nobody can make it
    found.made.append(path)


def _search(root: str, found: Protection) -> None:
    level = [root]
    seen = 0
    for depth in range(DEPTH):
        below: list[str] = []
        for folder in level:
            try:
                with os.scandir(folder) as entries:
                    listed = list(entries)
            except OSError:
                continue
            seen += len(listed)
            for entry in listed:
                name = entry.name.casefold()
                real_folder = entry.is_dir(follow_symlinks=False)
                if name == ".git":
                    _git(entry.path, real_folder, found, top=depth == 0)
                elif name in FOLDERS:
                    found.kept.append(entry.path)
                    if name == ".claude" and os.path.isdir(trees := os.path.join(entry.path, "worktrees")):
                        found.free.append(trees)
                elif name in FILES or (name == "git" and os.path.basename(folder).casefold() == ".config"):
                    found.kept.append(entry.path)
                elif real_folder and name not in _DEPENDENCIES:
                    below.append(entry.path)
        level = below
        if seen > MAX_ENTRIES:
            return


# -- git ---------------------------------------------------------------------------------------------------------------
def _git(path: str, folder: bool, found: Protection, *, top: bool) -> None:
    if folder:
        _git_folder(path, found)
        return
    found.kept.append(path)  # a file that says where the folder is
    if top:
        _linked(Path(path), found)


def _git_folder(path: str, found: Protection) -> None:
    """Commits need the folder; its configuration and hooks are programs. The same for the modules in it."""
    if not os.path.exists(os.path.join(path, "HEAD")):
        return
    _folder_for(path, "hooks", found)
    for name in ("config", "hooks", "config.worktree"):
        if os.path.lexists(part := os.path.join(path, name)):
            found.kept.append(part)
    found.repositories.append(path)
    found.absent.append(os.path.join(path, "commondir"))  # would move hooks and configuration to another place
    for tree in Path(path, "worktrees").glob("*"):  # where their configuration and hooks are
        found.kept += [str(tree / name) for name in ("commondir", "gitdir", "config.worktree") if (tree / name).exists()]
    modules = os.path.join(path, "modules")
    for place, folders, files in os.walk(modules):
        if "HEAD" in files and "config" in files:
            _git_folder(place, found)
            folders.clear()


def _linked(file: Path, found: Protection) -> None:
    """A linked worktree: its folder in the main repository, if that one says so too.

    The file may have come with an archive and name any place; only git makes both ends of the link.
    """
    try:
        place = (file.parent / file.read_text("utf-8", "surrogateescape").partition("gitdir:")[2].strip()).resolve()
        back = Path((place / "gitdir").read_text("utf-8", "surrogateescape").strip())
        common = (place / (place / "commondir").read_text("utf-8", "surrogateescape").strip()).resolve()
    except (OSError, ValueError, RuntimeError):
        return
    if back.is_absolute() and back.resolve() == file.resolve() and place.parent == common / "worktrees" and _mine(common):
        _git_folder(str(common), found)


def _repository_above(root: str, found: Protection) -> None:
    """The repository that a working directory lies in, where its root is further up."""
    if os.path.lexists(os.path.join(root, ".git")):
        return
    for folder in Path(root).parents:
        path = folder / ".git"
        if path.is_dir() and not path.is_symlink():
            if _mine(path):
                _git_folder(str(path), found)
            return
        if path.is_file():
            _linked(path, found)
            return


def _mine(path: Path) -> bool:
    try:
        return path.stat().st_uid == os.geteuid()
    except OSError:
        return False
