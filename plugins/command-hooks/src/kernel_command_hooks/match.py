"""Matchers: which values a matcher string covers (hooks contract, section 4)."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WIDE = re.compile(r"[A-Za-z0-9_\- ,|]*")
_NARROW = re.compile(r"[A-Za-z0-9_|]*")


class Matcher:
    """A matcher string, read once.

    ``problem`` says why it can match nothing; it is empty for a matcher that works.
    """

    __slots__ = ("_names", "_pattern", "problem", "text")

    def __init__(self, text: str | None, narrow: bool = False) -> None:
        self.text = text or ""
        self.problem = ""
        self._names: frozenset[str] | None = None
        self._pattern: re.Pattern[str] | None = None
        if self.text in ("", "*"):
            return
        if (_NARROW if narrow else _WIDE).fullmatch(self.text):
            parts = self.text.split("|") if narrow else re.split(r"[,|]", self.text)
            self._names = frozenset(name for part in parts if (name := part if narrow else part.strip()))
            if not self._names:
                self.problem = "it holds separators only"
            return
        try:
            self._pattern = re.compile(translate(self.text))
        except (re.error, ValueError, OverflowError, RecursionError) as error:
            self._names = frozenset()
            self.problem = f"it is no regular expression ({error})"

    def __call__(self, values: Iterable[str]) -> bool:
        """Whether it covers one of the values: the current name of a tool, or one of its old ones."""
        if self._names is not None:
            return not self._names.isdisjoint(values)
        if self._pattern is not None:
            return any(self._pattern.search(value) for value in values)
        return True


EVERYTHING = Matcher(None)

_LETTERS_ALIKE = frozenset("bBdDsSwWfnrtv")
"""Letters that mean the same behind a backslash in both languages; every other letter stands for itself in JavaScript."""


def translate(pattern: str) -> str:
    """A JavaScript regular expression without flags in Python's syntax.

    :raises ValueError: it means nothing in JavaScript, even where Python would take it.
    """
    out: list[str] = []
    place, repeated = 0, False
    while place < len(pattern):
        char = pattern[place]
        quantifier = False
        if char == "\\":
            text, place = _escape(pattern, place)
        elif char == "[":
            text, place = _char_class(pattern, place)
        elif char == "(":
            text, place = _group(pattern, place)
        elif char == "$":
            text, place = r"\Z", place + 1
        else:
            text, place = char, place + 1
            counted = char == "{" and re.match(r"\{\d+(,\d*)?\}", pattern[place - 1:])
            if char in "*+?" or counted:
                if repeated:
                    raise ValueError(f"nothing to repeat at position {place - 1}")
                quantifier = True
                if counted:
                    text, place = counted[0], place - 1 + len(counted[0])
                if pattern[place:place + 1] == "?":
                    text, place = text + "?", place + 1
        repeated = quantifier
        out.append(text)
    return "".join(out)


def _escape(pattern: str, place: int) -> tuple[str, int]:
    following = pattern[place + 1:place + 2]
    if not following:
        raise ValueError("it ends in a backslash")
    if following == "k" and (named := re.match(r"\\k<([A-Za-z_]\w*)>", pattern[place:])):
        return f"(?P={named[1]})", place + len(named[0])
    if following in "xu" and (code := re.match(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})", pattern[place:])):
        return code[0], place + len(code[0])
    if following == "0":
        return r"\x00", place + 2
    if following.isascii() and following.isalpha() and following not in _LETTERS_ALIKE:
        return following, place + 2
    return "\\" + following, place + 2


def _char_class(pattern: str, place: int) -> tuple[str, int]:
    """``[...]``. JavaScript's ``[]`` is nothing, ``[^]`` is anything, and brackets inside need no backslash."""
    negated = pattern[place + 1:place + 2] == "^"
    place += 2 if negated else 1
    items: list[str] = []
    while place < len(pattern) and pattern[place] != "]":
        if pattern[place] == "\\":
            text, place = _escape(pattern, place)
            items.append(r"\b" if text == r"\b" else re.escape(text) if len(text) == 1 else text)
        else:
            items.append("\\" + pattern[place] if pattern[place] in "[&~|" else pattern[place])
            place += 1
    if place >= len(pattern):
        raise ValueError("a character class has no end")
    if not items:
        return (r"[\s\S]" if negated else "(?!)"), place + 1
    return f"[{'^' if negated else ''}{''.join(items)}]", place + 1


def _group(pattern: str, place: int) -> tuple[str, int]:
    if pattern[place + 1:place + 2] != "?":
        return "(", place + 1
    if named := re.match(r"\(\?<([A-Za-z_]\w*)>", pattern[place:]):
        return f"(?P<{named[1]}>", place + len(named[0])
    for opening in ("(?:", "(?=", "(?!", "(?<=", "(?<!"):
        if pattern.startswith(opening, place):
            return opening, place + len(opening)
    raise ValueError(f"invalid group at position {place}")
