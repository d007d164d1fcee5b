"""Places that no rule opens: protected paths and critical removals (permissions contract, sections 8 and 9)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from .paths import Places, Target, compile_glob, normal, under
from .syntax import Part, Word
from .words import path_of

PROTECTED_FOLDERS = frozenset((
    ".git .vscode .idea .husky .cargo .devcontainer .yarn .mvn .claude .claude-plugin").split())
PROTECTED_FILES = frozenset((
    ".gitconfig .gitmodules .bashrc .bash_profile .bash_login .bash_aliases .bash_logout .zshrc .zprofile .zshenv .zlogin "
    ".zlogout .profile .envrc .npmrc .yarnrc .yarnrc.yml .pnp.cjs .pnp.loader.mjs .pnpmfile.cjs bunfig.toml .bunfig.toml "
    ".bazelrc .bazelversion .bazeliskrc .pre-commit-config.yaml lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml "
    "gradle-wrapper.properties maven-wrapper.properties .devcontainer.json .ripgreprc pyrightconfig.json .mcp.json "
    ".claude.json").split())
REMOVERS = frozenset(("rm", "rmdir"))
_DRIVE = re.compile(r"/[a-z](/[^/]*)?|[A-Za-z]:([\\/][^\\/]*)?[\\/]?")
_MAC_SYSTEM = frozenset(("/private/etc", "/private/var", "/private/tmp", "/private/home"))


def protected(target: Target, own: Iterable[str] = ()) -> str | None:
    """Which part of a path is protected, ``None`` where none is. Compared without case on every file system.

    :param own: folders of the harness itself: configuration, plugins.
    """
    for path in target.all:
        found = _protected(path, own)
        if found:
            return found
    return None


def _protected(path: str, own: Iterable[str]) -> str | None:
    names = path.casefold().split("/")
    for i, name in enumerate(names):
        if name in PROTECTED_FOLDERS and not (name == ".claude" and names[i + 1:i + 2] == ["worktrees"]):
            return name
        if name == "git" and i and names[i - 1] == ".config":
            return ".config/git"
    if names[-1] in PROTECTED_FILES:
        return names[-1]
    return next((folder for folder in own if under(path, folder)), None)


class Removals:
    """Whether a removal would take away what must not go.

    :param directories: what a relative target may be relative to; empty where a ``cd`` leads nobody knows where.
    :param added: additional directories.
    """

    def __init__(self, places: Places, directories: list[str], added: Iterable[str]) -> None:
        self.places = places
        self.view = places.view
        self.directories = directories
        self.home = normal(self.view.home)
        work = [*places.directories[:1], *directories]
        real = [r for d in (*work, self.home) if (r := self.view.resolve(d)) is not None]
        self.working = tuple(dict.fromkeys((*work, *real)))
        self.added = tuple(added)

    def critical(self, words: list[Word]) -> str | None:
        """What a command with these resolved words would remove that is critical; ``None``: nothing."""
        if not words or words[0].value not in REMOVERS:
            return None
        options = True
        for word in words[1:]:
            if options and word.value.startswith("-") and word.value != "-":
                options = word.value != "--"
                continue
            found = self._target(word)
            if found:
                return found
        return None

    def _target(self, word: Word) -> str | None:
        text = word.value
        word = Word(word.text, tuple(_well_known(p) for p in word.parts))
        first = word.parts[0] if word.parts else None
        if first is not None and first.kind in "vd" and not (first.kind == "v" and first.text in ("HOME", "PWD")):
            rest = "".join(p.text for p in word.parts[1:])
            clean = rest.strip("/")
            if rest.startswith("/") and (not clean or (word.glob and "/" not in clean)):
                return f"{text} (directly under a variable)"
            return None
        if word.tilde and text.split("/")[0] not in ("~", "~+"):
            return f"{text} (a home directory)"
        found = path_of(word, self.view, self.directories[0] if self.directories else None, variables=True)
        if found is None or not found.text:
            return None
        if not found.text.startswith("/") and not _DRIVE.fullmatch(found.text):
            if not self.directories and (word.glob or normal(found.text) in (".", "..")):
                return f"{text} (in a directory that is not known)"
            return next((c for d in self.directories if (c := self._path(posixpath.join(d, found.text), word.glob, text))), None)
        return self._path(found.text, word.glob, text)

    def _path(self, path: str, glob: bool, text: str) -> str | None:
        if _DRIVE.fullmatch(path) and (self.view.windows or ":" in path):
            return f"{text} (a drive's root or directly below it)"
        given = normal(path)
        for place in {given, *((r,) if (r := self.view.resolve(given)) else ())}:
            if place.count("/") == 1:
                return f"{text} (the root or directly below it)"
            if place in _MAC_SYSTEM:
                return f"{text} (a system directory)"
            if under(self.home, place) or any(under(d, place) for d in self.working):
                return f"{text} (the home or working directory, or a parent of it)"
        if glob:
            return self._glob(given, text)
        return None

    def _glob(self, path: str, text: str) -> str | None:
        """A glob directly under an additional directory or a parent of one, or one that takes the working directory."""
        folder, name = posixpath.split(path)
        if any(under(d, folder) for d in self.added):
            return f"{text} (everything in an additional directory or a parent of one)"
        if folder == self.home and not name.strip("*?"):
            return f"{text} (everything in the home directory)"
        if any(_fits(path, d) for d in (*self.working, self.home)):
            return f"{text} (may be the home or working directory, or a parent of it)"
        return None


def _well_known(part: Part) -> Part:
    """``$(pwd)`` and the longer spellings of ``$HOME`` and ``$PWD``."""
    if part.kind == "d" and part.raw.strip("`$()").split() in (["pwd"], ["pwd", "-P"], ["pwd", "-L"]):
        return part._replace(kind="v", text="PWD")
    match = re.match(r"\$\{(HOME|PWD)\b", part.raw) if part.kind == "d" else None
    return part._replace(kind="v", text=match[1]) if match else part


def _fits(pattern: str, directory: str) -> bool:
    """Whether a glob may stand for the directory or a parent of it."""
    wanted, names = pattern.split("/"), directory.split("/")
    return len(wanted) <= len(names) and all(
        compile_glob(w, broken=True).fullmatch(n) for w, n in zip(wanted, names, strict=False))
