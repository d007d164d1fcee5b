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
        if not _MOVES.search(text):
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
        for n, word in enumerate(words):
            name, _, value = word.partition("=")
            if name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR") and (value or word.endswith("=")):
                if problem := self._target(value, place, f"{name}="):
                    return problem
            starts = n == 0 or words[n - 1] in _BREAKS or set(words[n - 1]) <= set(";&|()`") or words[n - 1] in _PREFIXES
            if not starts:
                continue
            if word in ("cd", "pushd", "chdir"):
                target = next((w for w in words[n + 1:] if w not in ("-P", "-L", "--")), "")
                if set(target) <= set(";&|()`"):
                    target = ""
                if problem := self._target(target or "~", place, word):
                    return problem
                place = os.path.join(place or cwd, os.path.expanduser(target or "~"))
            elif os.path.basename(word) == "git":
                if problem := self._git(words[n + 1:], place):
                    return problem
        return ""

    def _git(self, words: list[str], place: str | None) -> str:
        for n, word in enumerate(words):
            if word in _BREAKS:
                break
            if word in ("-C", "--git-dir", "--work-tree"):
                if problem := self._target(words[n + 1] if n + 1 < len(words) else "", place, f"git {word}"):
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


_PREFIXES = frozenset({"then", "do", "else", "{", "!", "time", "command", "builtin", "exec", "env", "nohup", "sudo"})
