"""Ignore files (``.gitignore``, ``.ignore``, ``.rgignore``) for walks without ripgrep. Free of the kernel, as ``globs.py``."""

from __future__ import annotations

import os
from typing import NamedTuple

from kernel_tools_files.globs import Globs

FILES = (".gitignore", ".ignore", ".rgignore")
MAX_BYTES = 1 << 20


class Rule(NamedTuple):
    """One line. ``negated`` brings a path back, ``folders``: for folders only."""

    globs: Globs
    negated: bool
    folders: bool


class Ignores:
    """The rules that hold below a folder: its own, then those of the folders above. The nearest and last that matches counts."""

    def __init__(self, folder: str, above: Ignores | None = None) -> None:
        self._rules = [rule for name in FILES for rule in _rules(os.path.join(folder, name))]
        self._rules.reverse()
        self._above = above
        self._name = os.path.basename(folder)

    def ignored(self, names: list[str], *, folder: bool) -> bool:
        """Whether a path below the folder, given by its names, is ignored. Its parents were asked before."""
        for rule in self._rules:
            if (folder or not rule.folders) and rule.globs.covers(names):
                return not rule.negated
        return self._above.ignored([self._name, *names], folder=folder) if self._above else False


def ignores_above(folder: str) -> Ignores | None:
    """The rules of the folders above, up to the repository's root; none outside of a repository."""
    chain: list[str] = []
    at = folder
    while not os.path.exists(os.path.join(at, ".git")):
        parent = os.path.dirname(at)
        if parent == at:
            return None
        at = parent
        chain.append(at)
    made: Ignores | None = None
    for at in reversed(chain):
        made = Ignores(at, made)
    return made


def _rules(path: str) -> list[Rule]:
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return []
    return [rule for line in text.split("\n") if (rule := _rule(line.rstrip("\r")))]


def _rule(line: str) -> Rule | None:
    if line.startswith("#"):
        return None
    stripped = line.rstrip(" ")
    line = stripped + " " if stripped.endswith("\\") and stripped != line else stripped
    negated = line.startswith("!")
    line = line[1:] if negated else line
    folders = line.endswith("/")
    line = line.rstrip("/") if folders else line
    if not line:
        return None
    try:  # braces mean nothing in ignore files
        globs = Globs(line.replace("{", "\\{"), any_depth="/" not in line)
    except ValueError:
        return None
    return Rule(globs, negated, folders)
