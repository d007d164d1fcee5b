"""What keeps an agent with a worktree of its own out of the main checkout (subagents contract, 8.2).

Text is judged, nothing is run. What cannot be traced is refused: the agent can say it more plainly.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel import Session

EDITS = frozenset({"Edit", "Write", "NotebookEdit"})
SHELLS = frozenset({"Bash", "PowerShell", "Monitor"})
_HEREDOC = re.compile(r"<<-?\s*(?![<'\"\\\s-])[A-Za-z_]")
_BRACES = re.compile(r"(?<!\$)\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}")
_MOVES = re.compile(r"(?:^|[\s;&|(`/])(?:cd|pushd|chdir|git|env)(?=$|[\s;&|)`])|GIT_(?:DIR|WORK_TREE|COMMON_DIR)")
_BREAKS = frozenset({";", "&", "&&", "|", "||", "|&", "(", ")", "\n"})


class Fence:
    """``path`` and ``main`` are resolved."""

    def __init__(self, path: str, main: str) -> None:
        self.path = path
        self.main = main

    def refusal(self, tool: str, input: dict[str, Any], session: Session) -> str:
        """Why a call is refused; empty where it is not."""
        if tool in EDITS:
            given = str(input.get("file_path") or input.get("notebook_path") or "")
            if self._is_main(os.path.join(session.state.cwd, os.path.expanduser(given))):
                return f"{given} lies in the main checkout. You work in the worktree {self.path}: change the file there."
        elif tool in SHELLS:
            if not self._is_mine(session.state.cwd):
                return f"The working directory is not the worktree {self.path}."
            return self.command(str(input.get("command") or ""), session.state.cwd)
        return ""

    def _is_mine(self, path: str) -> bool:
        real = os.path.realpath(path)
        return real == self.path or real.startswith(self.path + os.sep)

    def _is_main(self, path: str) -> bool:
        real = os.path.realpath(path)
        return (real == self.main or real.startswith(self.main + os.sep)) and not self._is_mine(path)

    def command(self, text: str, cwd: str) -> str:
        """Why a shell command is refused; empty where it stays in the worktree."""
        if _HEREDOC.search(text):
            return "A here-document with an unquoted delimiter cannot be checked. Quote the delimiter."
        if _BRACES.search(text):
            return "Brace expansion cannot be checked. Write the words out."
        if not _MOVES.search(re.sub(r"[\"'\\]", " ", text)) and not _MOVES.search(re.sub(r"[\"'\\]", "", text)):
            return ""
        lexer = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars="();<>|&`")
        lexer.whitespace_split = True
        lexer.commenters = ""
        try:
            words = list(lexer)
        except ValueError:
            return "The command cannot be read. Write it more plainly."
        return self._words(words, cwd)

    def _words(self, words: list[str], cwd: str) -> str:
        place: str | None = cwd
        starts = True
        for n, word in enumerate(words):
            name, _, value = word.partition("=")
            if name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR") and (value or word.endswith("=")):
                if problem := self._target(value, place, f"{name}="):
                    return problem
            if os.path.basename(word) == "git":  # behind whatever runs it
                if problem := self._git(words[n + 1:], place):
                    return problem
            if word == "env" and (problem := self._env(words[n + 1:], place)):
                return problem
            here, starts = starts, _opens(word)
            if not here:
                continue
            starts = starts or _ASSIGNMENT.fullmatch(word) is not None
            if word == "eval" or (os.path.basename(word) in _SHELLS and _hides(words[n + 1:])):
                return f"What {word} runs cannot be checked. Give the command itself."
            if word in ("cd", "pushd", "chdir"):
                target = next((w for w in words[n + 1:] if w not in ("-P", "-L", "--")), "")
                if set(target) <= set(";&|()`"):
                    target = ""
                if problem := self._target(target or "~", place, word):
                    return problem
                place = os.path.join(place or cwd, os.path.expanduser(target or "~"))
        return ""

    def _env(self, words: list[str], place: str | None) -> str:
        """``env -C DIR`` runs a command elsewhere."""
        for n, word in enumerate(words):
            if word in _BREAKS:
                break
            if word in ("-C", "--chdir") or word.startswith("--chdir="):
                target = word.partition("=")[2] or (words[n + 1] if n + 1 < len(words) else "")
                if problem := self._target(target, place, "env -C"):
                    return problem
        return ""

    def _git(self, words: list[str], place: str | None) -> str:
        for n, word in enumerate(words):
            if word in _BREAKS:
                break
            if word in ("-C", "--git-dir", "--work-tree"):
                if problem := self._target(words[n + 1] if n + 1 < len(words) else "", place, f"git {word}"):
                    return problem
            elif word.lower().startswith("core.worktree="):
                if problem := self._target(word.partition("=")[2], place, "core.worktree"):
                    return problem
            elif word.startswith(("--git-dir=", "--work-tree=")):
                if problem := self._target(word.partition("=")[2], place, f"git {word.partition('=')[0]}"):
                    return problem
        return ""

    def _target(self, target: str, place: str | None, what: str) -> str:
        if target == "-" or re.search(r"[$`*?\[]|^~[^/]", target):
            return f"Where {what} {target} leads cannot be checked. Name the place itself."
        path = os.path.join(place or self.path, os.path.expanduser(target))
        if not self._is_mine(path):
            return f"{what} {target} leaves the worktree {self.path}, which is where you work."
        return ""


def _opens(word: str) -> bool:
    """Whether a command begins behind a word."""
    return word in _BREAKS or set(word) <= set(";&|()`") or word in _PREFIXES


def _hides(words: list[str]) -> bool:
    """Whether a shell with these arguments runs what stands in one of them, or what a pipe brings."""
    options = words[:next((n for n, w in enumerate(words) if not w.startswith("-")), len(words))]
    after = words[len(options):]
    return not after or _opens(after[0]) or any("c" in option for option in options if not option.startswith("--"))


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh"})
_PREFIXES = frozenset({"then", "do", "else", "{", "!", "time", "command", "builtin", "exec", "env", "nohup", "sudo"})
