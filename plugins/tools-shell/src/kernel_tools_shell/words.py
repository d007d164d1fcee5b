"""A command's simple commands as words, and what follows from them: which exit codes are results, what may be left running.

This is no security check: permissions are decided elsewhere, on a real parse tree. Here a wrong guess costs a retry.
"""

from __future__ import annotations

import re

Simple = tuple[str, ...]
"""The words of one simple command, quotes resolved, redirections left out."""

_OPENS = {"if": "fi", "while": "done", "until": "done", "for": "done", "select": "done", "case": "esac", "{": "}"}
_INNER = frozenset("then else elif do".split())
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_REDIRECT = re.compile(r"\d*(<<<|<<-?|<>|<&|>>|>&|>\||&>>|&>|<|>)")
_TRANSPARENT = frozenset("command builtin time nohup".split())
_GIT = re.compile(r"(?<![\w.\-])(?:/?(?:[\w.\-]+/)*)git(?![\w./\-])")
_MOVES = frozenset("cd pushd popd chdir".split())
_EXIT_1 = {
    **dict.fromkeys(("grep", "rg", "egrep", "fgrep", "git grep"), "no match was found"),
    **dict.fromkeys(("diff", "git diff"), "the files differ"),
    **dict.fromkeys(("test", "["), "the condition is false"),
    "find": "some places could not be searched",
}
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./ -]+")
_READERS = frozenset("ls cat pwd echo head tail wc grep stat which du file basename dirname realpath readlink true".split())
_GIT_READERS = frozenset("status log diff show".split())
_GIT_WRITES = ("--output", "--ext-diff", "--textconv")
_WAITS = frozenset(("-f", "-F", "--follow", "--retry"))  # tail: it would never end


class _Unclear(Exception):
    """The text ends inside something, or does not fit together."""


def simple_commands(text: str) -> list[Simple] | None:
    """All simple commands outside of substitutions, in order; ``None`` where the text cannot be read as a whole."""
    try:
        return _Reader(text).read() or None
    except _Unclear:
        return None


def reads_only(text: str) -> bool:
    """Whether the text is one simple command of plain words that is known to change nothing."""
    words = text.split()
    if not words or not _PLAIN.fullmatch(text):
        return False
    if words[0] == "git":
        return len(words) > 1 and words[1] in _GIT_READERS and not any(w.startswith(_GIT_WRITES) for w in words)
    return words[0] in _READERS and not (words[0] == "tail" and _WAITS & set(words))


def outlives_timeout(text: str) -> bool:
    """Whether the command moves to the background at its timeout, instead of being killed (tools contract, 10.2)."""
    commands = simple_commands(text)
    return commands is not None and _program(commands[0]) != "sleep" and not _GIT.search(text)


def changes_directory(text: str) -> bool:
    return any(_program(words) in _MOVES for words in simple_commands(text) or ())


def meaning(text: str, exit_code: int) -> str | None:
    """What the exit code says if it is a result and not a failure; the last command of the line decides (10.3)."""
    commands = simple_commands(text) if exit_code == 1 else None
    return _EXIT_1.get(_program(commands[-1])) if commands else None


def _program(words: Simple) -> str:
    """The program's bare name; ``git`` together with its subcommand."""
    rest = list(words)
    while rest and (_ASSIGNMENT.match(rest[0]) or rest[0] in _TRANSPARENT):
        rest.pop(0)
    name = rest.pop(0).rsplit("/", 1)[-1] if rest else ""
    if name != "git":
        return name
    while rest and rest[0].startswith("-"):
        rest = rest[2 if rest[0] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") else 1:]
    return f"git {rest[0]}" if rest else name


class _Reader:
    """One pass over the text. ``_open`` holds what must still be closed."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\\\n", "")
        self._at = 0
        self._open: list[str] = []
        self._heredocs: list[tuple[str, bool]] = []
        self._words: list[str] = []
        self._done: list[Simple] = []

    def read(self) -> list[Simple]:
        while self._at < len(self._text):
            self._step()
        self._end_command()
        if self._open or self._heredocs:
            raise _Unclear
        return self._done

    def _step(self) -> None:
        text, at = self._text, self._at
        char = text[at]
        if char in " \t\r":
            self._at += 1
        elif char == "\n":
            self._end_command()
            self._at += 1
            self._skip_heredocs()
        elif char == "#":
            self._at = self._find("\n", at, len(text))
        elif text.startswith(("<(", ">("), at):
            self._words.append(self._word())
        elif found := _REDIRECT.match(text, at):
            self._redirect(found)
        elif char in ";&|":
            self._end_command()
            self._at += 1
        elif char == "(":
            self._end_command()
            self._open.append(")")
            self._at += 1
        elif char == ")":
            self._close_paren()
        else:
            self._take(self._word())

    def _take(self, word: str) -> None:
        if self._words:
            self._words.append(word)
        elif word in _OPENS:
            self._open.append(_OPENS[word])
            if word in ("for", "select", "case"):
                self._words.append(word)
        elif word in ("fi", "done", "esac", "}"):
            if not self._open or self._open.pop() != word:
                raise _Unclear
            if word != "}":
                self._done.append((word,))
        elif word not in _INNER:
            self._words.append(word)

    def _end_command(self) -> None:
        if self._words:
            self._done.append(tuple(self._words))
            self._words = []

    def _close_paren(self) -> None:
        if self._open and self._open[-1] == ")":
            self._end_command()
            self._open.pop()
        elif self._open and self._open[-1] == "esac":
            self._words = []  # a pattern of case
        else:
            raise _Unclear
        self._at += 1

    def _redirect(self, found: re.Match[str]) -> None:
        self._at = found.end()
        while self._at < len(self._text) and self._text[self._at] in " \t":
            self._at += 1
        if self._at >= len(self._text) or self._text[self._at] in "\n;|":
            raise _Unclear
        target = self._word()
        if found[1] in ("<<", "<<-"):
            self._heredocs.append((target, found[1] == "<<-"))

    def _skip_heredocs(self) -> None:
        for delimiter, tabs in self._heredocs:
            while True:
                if self._at >= len(self._text):
                    raise _Unclear
                end = self._find("\n", self._at, len(self._text))
                line = self._text[self._at:end]
                self._at = end + 1
                if (line.lstrip("\t") if tabs else line) == delimiter:
                    break
        self._heredocs = []

    # -- words -------------------------------------------------------------------------------------------------------
    def _word(self) -> str:
        """The word that begins here, quotes resolved; substitutions stay as they are written."""
        text, out = self._text, list[str]()
        while self._at < len(text):
            at, char = self._at, text[self._at]
            if char == "\\":
                out.append(text[at + 1:at + 2])
                self._at += 2
            elif char == "'":
                self._at = self._find("'", at + 1) + 1
                out.append(text[at + 1:self._at - 1])
            elif char == '"':
                out.append(self._double())
            elif char == "`" or text.startswith(("$(", "${", "<(", ">("), at):
                self._substitution()
                out.append(text[at:self._at])
            elif char in " \t\r\n;&|()<>":
                break
            else:
                out.append(char)
                self._at += 1
        return "".join(out)

    def _double(self) -> str:
        self._at += 1
        out: list[str] = []
        while self._at < len(self._text):
            at, char = self._at, self._text[self._at]
            if char == '"':
                self._at += 1
                return "".join(out)
            if char == "\\":
                out.append(self._text[at + 1:at + 2])
                self._at += 2
            elif char == "`" or self._text.startswith(("$(", "${"), at):
                self._substitution()
                out.append(self._text[at:self._at])
            else:
                out.append(char)
                self._at += 1
        raise _Unclear

    def _substitution(self) -> None:
        """Walk over ```` `..` ````, ``$(..)``, ``${..}`` or ``<(..)`` to its end; quotes inside count."""
        if self._text[self._at] == "`":
            self._at = self._find("`", self._at + 1) + 1
            return
        opener = self._text[self._at + 1]
        closer = ")" if opener == "(" else "}"
        depth = 0
        self._at += 1
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == "\\":
                self._at += 1
            elif char == "'":
                self._at = self._find("'", self._at + 1)
            elif char == '"':
                self._double()
                continue
            elif char == opener:
                depth += 1
            elif char == closer:
                depth -= 1
                if not depth:
                    self._at += 1
                    return
            self._at += 1
        raise _Unclear

    def _find(self, what: str, start: int, default: int | None = None) -> int:
        found = self._text.find(what, start)
        if found >= 0:
            return found
        if default is None:
            raise _Unclear
        return default
