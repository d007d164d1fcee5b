"""Patterns in which ``*`` stands for any run of characters (permissions contract, 5.5; 2.6; 6.3).

No regular expressions: matching takes time in proportion to the text, whatever the pattern.
"""

from __future__ import annotations

import re

from .syntax import split_blanks


class Star:
    """A pattern with ``*`` and no other special character. The whole text must match."""

    __slots__ = ("pieces",)

    def __init__(self, pattern: str) -> None:
        self.pieces = pattern.split("*")

    @property
    def wild(self) -> bool:
        return len(self.pieces) > 1

    def matches(self, text: str) -> bool:
        pieces = self.pieces
        if len(pieces) == 1:
            return text == pieces[0]
        first, last = pieces[0], pieces[-1]
        if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
            return False
        position, end = len(first), len(text) - len(last)
        for piece in pieces[1:-1]:
            found = text.find(piece, position, end)
            if found < 0:
                return False
            position = found + len(piece)
        return True


class CommandPattern:
    """The specifier of a shell rule.

    A trailing `` *`` (or ``:*``) means: the part before, and then a blank or the end.
    """

    __slots__ = ("_exact", "_more", "fold", "loose", "name_only", "text", "wild")

    def __init__(self, specifier: str, *, fold: bool = False) -> None:
        text = split_blanks(specifier)
        if text.endswith(":*"):
            text = text[:-2] + " *"
        self.fold = fold
        self.text = text = text.lower() if fold else text
        self.wild = "*" in text
        ends_word = text.endswith(" *")
        base = text[:-2] if ends_word else text
        self._exact = Star(base)
        self._more = Star(base + " *") if ends_word else None
        self.name_only = " " not in base.rstrip("*") and (ends_word or not self.wild or base.endswith("*"))
        lead = base.split("*", 1)[0].rstrip()
        self.loose = re.compile(rf"(?<![\w./-]){re.escape(lead)}(?![\w-])" if ends_word or not self.wild else
                                rf"(?<![\w./-]){re.escape(lead)}") if lead else None

    def matches(self, text: str) -> bool:
        if self.fold:
            text = text.lower()
        return self._exact.matches(text) or (self._more is not None and self._more.matches(text))

    def may_begin(self, start: str) -> bool:
        """Whether a command that begins with these words might still become one that matches."""
        lead = self.text.split("*", 1)[0]
        return lead.startswith(start + " ") or (self.wild and bool(lead.strip()) and (start + " ").startswith(lead))

    def found_in(self, text: str) -> bool:
        """Whether a text that is not understood might hold such a command."""
        if self.fold:
            text = text.lower()
        return self.loose is None or self.loose.search(text) is not None
