"""From the text of a shell command to a ``Script``: the way in.

Three ways: a plain literal command is read at once (no character in it means anything to a shell); everything else
goes through tree-sitter and the reader; what cannot be read is an ``Opaque`` with the reason. Results are kept.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .syntax import Opaque, Script, Simple, literal_word

if TYPE_CHECKING:
    from .forms import Sub

MAX_CHARS = 10_000
CACHE = 512
"""Scripts that one parser keeps."""

_SIMPLE = re.compile(r"[A-Za-z0-9_./-]+(?: +[A-Za-z0-9_./:,@%+-][A-Za-z0-9_./:,@%+=-]*)* *")
"""No quote, no expansion, no operator, no glob, no assignment before the name. A name that is a reserved word is no match."""
_NOT_SIMPLE = frozenset((
    "if then elif else fi for while until do done case esac select function in coproc time export declare typeset local "
    "readonly unset unsetenv").split())
_ASCII = bytes(b if b < 0x80 else ord("_") for b in range(256))
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\\n")
_COMMENT = re.compile(r"(?:^|[\s;&|()<>`])#")
_HEREDOC = re.compile(r"(?<!<)<<(?!<)")
_QUOTED_HEREDOC = re.compile(r"(?<!<)<<(?P<tabs>-?)[ \t]*(?P<quote>['\"])(?P<word>[A-Za-z0-9_.-]+)(?P=quote)[^\n]*\n")


class Parser:
    """Parses and remembers. One per session; tree-sitter is imported when it is first needed."""

    def __init__(self) -> None:
        self._parser: Any = None
        self._known: dict[str, Script | Opaque] = {}
        self._subs: dict[str, list[Sub]] = {}

    def parse(self, text: str) -> Script:
        """The script of a command.

        :raises Opaque: it is not understood.
        """
        found = self._known.get(text)
        if found is None:
            try:
                found = self._read(text)
            except Opaque as error:
                found = error
            except (RecursionError, UnicodeError) as error:
                found = Opaque(type(error).__name__)
            if len(self._known) >= CACHE:
                self._known.clear()
                self._subs.clear()
            self._known[text] = found
        if isinstance(found, Opaque):
            raise Opaque(*found.args)
        return found

    def analysed(self, text: str, script: Script) -> list[Sub]:
        """The subcommands of a script as rules see them."""
        found = self._subs.get(text)
        if found is None:
            from .forms import analyse

            found = self._subs[text] = analyse(script, self)
        return found

    def _read(self, text: str) -> Script:
        if _SIMPLE.fullmatch(text) and len(text) <= MAX_CHARS:
            words = text.split()
            if words[0] not in _NOT_SIMPLE:
                return Script([Simple([literal_word(word) for word in words])])
        check_characters(text)
        from .reader import read

        data = join_lines(text).encode()
        root = self._tree(data)
        return read(data.decode("latin-1"), root, ascii=data.isascii())

    def _tree(self, data: bytes) -> Any:
        """The tree of a command. The grammar's C code looks characters up in tables that end at 255 and crashes beyond,
        so it gets ASCII: every other byte is part of a word to a shell, and stands as ``_``. The reader reads the real text.
        """
        if self._parser is None:
            import tree_sitter
            import tree_sitter_bash

            self._parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
        return self._parser.parse(data.translate(_ASCII)).root_node


def check_characters(text: str) -> None:
    """:raises Opaque: the text is too long or holds characters that a reader of the command would not see."""
    if len(text) > MAX_CHARS:
        raise Opaque(f"it is longer than {MAX_CHARS:,} characters")
    if _CONTROL.search(text):
        raise Opaque("it holds a control character")
    if not text.isascii():
        from unicodedata import category

        for c in text:
            if c >= "\x80" and (kind := category(c)) in ("Cf", "Cc", "Cs"):
                raise Opaque("it holds an invisible character" if kind == "Cf" else "it holds a control character")


def join_lines(text: str) -> str:
    """The text without backslash-newline, where that is certain.

    :raises Opaque: a comment or a heredoc might hold one, where it means something else.
    """
    if not _CONTINUED.search(text):
        return text
    marks = _HEREDOC.findall(text)
    if not marks:
        return _joined(text, [])[0]
    start = _QUOTED_HEREDOC.search(text)
    if len(marks) > 1 or start is None:
        raise Opaque("a continued line beside a heredoc")
    tabs = r"\t*" if start["tabs"] else ""
    end = re.compile(rf"^{tabs}{re.escape(start['word'])}$", re.MULTILINE).search(text, start.end())
    if end is None:
        raise Opaque("a heredoc without its end")
    head, state = _joined(text[:start.end()], [])
    tail, _ = _joined(text[end.end():], state)
    return head + text[start.end():end.end()] + tail


def _joined(text: str, state: list[str]) -> tuple[str, list[str]]:
    """Join lines outside single quotes. ``state``: what is open, outermost first: ``"``, ``'``, ``$'``, ``(``, ``$(``.

    A wrong guess is harmless: it leaves a backslash-newline, which the lexer refuses, or takes one out of a quoted
    literal, which changes data and no structure. Only a comment could hide a command; texts with one are refused.
    """
    if not _CONTINUED.search(text):
        return text, _scan(text, state)[1]
    if _COMMENT.search(text):
        raise Opaque("a continued line beside a comment")
    return _scan(text, state)


def _scan(text: str, state: list[str]) -> tuple[str, list[str]]:
    out: list[str] = []
    open_ = list(state)
    i = 0
    while i < len(text):
        c, pair = text[i], text[i:i + 2]
        top = open_[-1] if open_ else ""
        if top == "'" or (top == "$'" and c != "\\"):
            if c == "'":
                open_.pop()
        elif c == "\\":
            if pair == "\\\n" and top != "$'":
                i += 2
                continue
            out.append(pair)
            i += 2
            continue
        elif pair == "$(":
            open_.append("$(")
            out.append(pair)
            i += 2
            continue
        elif c == '"':
            open_.pop() if top == '"' else open_.append('"')
        elif top != '"':
            if pair == "$'":
                open_.append("$'")
                out.append(pair)
                i += 2
                continue
            if c == "'":
                open_.append("'")
            elif c == "(":
                open_.append("(")
            elif c == ")" and top in ("(", "$("):
                open_.pop()
        out.append(c)
        i += 1
    return "".join(out), open_
