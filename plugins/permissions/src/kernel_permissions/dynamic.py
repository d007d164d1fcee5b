"""Variables, settings and options whose value another program runs: what the words of a command do not show as a command.

For ask and deny rules only. A value that is a command becomes a script of its own; one that names a file with commands, or
gives a word another meaning, makes unknown what runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from .syntax import Assign, Word, literal_word
from .wrappers import SHELLS, git_plain


class Runs(NamedTuple):
    """``script``: a text that is run; ``unknown``: why nobody can say what is run."""

    script: Word | None = None
    unknown: str = ""


_COMMAND_VARIABLES = re.compile(
    r"(?:GIT_(?:SSH|SSH_COMMAND|EXTERNAL_DIFF|PAGER|EDITOR|SEQUENCE_EDITOR|ASKPASS|PROXY_COMMAND)|(?:MAN|SYSTEMD_|GH_|BAT_)?PAGER"
    r"|(?:GH_)?EDITOR|VISUAL|FCEDIT|LESSOPEN|LESSCLOSE|BROWSER|(?:SSH|SUDO)_ASKPASS|RSYNC_RSH|CVS_RSH)")
_FILE_VARIABLES = re.compile(r"BASH_ENV|ENV|GIT_CONFIG.*|GIT_EXEC_PATH|ZDOTDIR")
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
_COMMAND_KEYS = re.compile(
    r"core\.(?:pager|editor|fsmonitor|sshcommand|askpass|gitproxy)|pager\..*|sequence\.editor|diff\.external"
    r"|diff\..*\.(?:command|textconv)|merge\..*\.driver|(?:merge|diff)tool\..*\.(?:cmd|path)|filter\..*\.(?:clean|smudge|process)"
    r"|gpg\.(?:.*\.)?program|credential\.(?:.*\.)?helper|remote\..*\.(?:uploadpack|receivepack)|trailer\..*\.(?:cmd|command)"
    r"|(?:browser|man)\..*\.cmd|web\.browser|interactive\.difffilter|uploadpack\.packobjectshook|submodule\..*\.update"
    r"|sendemail\..*cmd")
_FILE_KEYS = re.compile(r"alias\..*|core\.hookspath|include\.path|includeif\..*|init\.templatedir|url\..*\.insteadof")
_SHELL_OPTIONS = {
    "rebase": ("-x", "--exec"), "difftool": ("-x", "--extcmd"), "fetch": ("--upload-pack",), "pull": ("--upload-pack",),
    "clone": ("-u", "--upload-pack"), "ls-remote": ("--upload-pack",), "push": ("--receive-pack", "--exec"),
    "archive": ("--exec",), "grep": ("-O", "--open-files-in-pager"), "send-email": ("--smtp-server", "--to-cmd", "--cc-cmd")}
"""Options of git's subcommands whose value is a command."""
_MAY_RUN = frozenset("fc r sched zmodload autoload foreach always".split())
"""Words of bash and zsh that run or load what stands elsewhere."""


def by_variables(assigns: Iterable[Assign], words: Iterable[Word]) -> Iterator[Runs]:
    """``PAGER='rm x'`` before a command, and the same as a word of ``env``, ``export``, ``sudo``, ...."""
    words = list(words)
    pairs = [(a.name, a.value) for a in assigns]
    for word in words:
        if match := _ASSIGNED.match(word.value):
            pairs.append((match[1], word if word.dynamic else literal_word(word.value[match.end():], quoted=True)))
    for name, value in pairs:
        if name == "ENV" and value is not None and not value.dynamic and value.value.isalnum() and not any(
                w.value.rsplit("/", 1)[-1] in SHELLS for w in words):
            continue  # ENV=production npm start: only a shell takes it for a file
        if _FILE_VARIABLES.fullmatch(name):
            yield Runs(unknown=f"{name} may change what runs")
        elif _COMMAND_VARIABLES.fullmatch(name):
            yield Runs(value) if value is not None else Runs(unknown=f"{name} holds a command")


def by_name(words: list[Word]) -> Iterator[Runs]:
    name = words[0].value
    if name in _MAY_RUN:
        yield Runs(unknown=f"{name} may run what does not stand there")
    elif name == "emulate":
        yield from (Runs(later) for word, later in pairwise(words) if word.value == "-c")
    elif name == "git":
        yield from _git(words)


def _git(words: list[Word]) -> Iterator[Runs]:
    for word, later in pairwise(words):
        if word.value in ("-c", "--config", "--config-env"):
            yield from _setting(*_cut(later), named=word.value == "--config-env")
    for word in words[1:]:
        glued = re.match(r"-c|--config-env=|--config=", word.value)
        if glued and "=" in word.value[glued.end():] and not word.dynamic:
            yield from _setting(*_cut(literal_word(word.value[glued.end():], quoted=True)), named="env" in glued[0])
        if word.value.startswith("--exec-path="):
            yield Runs(unknown="git runs programs of another folder")
    plain = git_plain(words) or words
    name = plain[1].value if len(plain) > 1 else ""
    rest = plain[2:]
    if name == "config":
        for word, later in pairwise([*rest, literal_word("")]):
            if later.value:
                yield from _setting(word.value, later)
    elif name == "submodule" and any(w.value == "foreach" for w in rest):
        start = next(i for i, w in enumerate(rest) if w.value == "foreach")
        yield _joined([w for w in rest[start + 1:] if w.value not in ("--recursive", "-q", "--quiet")])
    elif name == "bisect" and rest[:1] and rest[0].value == "run":
        yield _joined(rest[1:])
    elif name in ("filter-branch", "for-each-repo"):
        yield Runs(unknown=f"git {name} runs what its options hold")
    yield from _options(rest, _SHELL_OPTIONS.get(name, ()))


def _options(words: list[Word], options: tuple[str, ...]) -> Iterator[Runs]:
    for word, later in pairwise([*words, literal_word("")]):
        for option in options:
            if word.value == option and later.value:
                yield Runs(later)
            elif word.value.startswith(option + "=" if option.startswith("--") else option) and word.value != option:
                value = word.value[len(option):].removeprefix("=")
                yield Runs(word if word.dynamic else literal_word(value, quoted=True))


def _setting(key: str, value: Word, named: bool = False) -> Iterator[Runs]:
    """``named``: the value is the name of a variable that holds it."""
    key = key.lower()
    if _FILE_KEYS.fullmatch(key) or (named and _COMMAND_KEYS.fullmatch(key)):
        yield Runs(unknown=f"the setting {key} may change what git runs")
    elif _COMMAND_KEYS.fullmatch(key) and value.value not in ("true", "false"):
        yield Runs(value if value.dynamic else literal_word(value.value.removeprefix("!"), quoted=True))


def _cut(word: Word) -> tuple[str, Word]:
    key, _, value = word.value.partition("=")
    return key, word if word.dynamic else literal_word(value, quoted=True)


def _joined(words: list[Word]) -> Runs:
    if any(w.dynamic for w in words):
        return Runs(unknown="git runs what is only known when it runs")
    return Runs(literal_word(" ".join(w.value for w in words), quoted=True))
