"""Command lines taken apart by a table of flags. What the table does not name is not understood."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from .syntax import Word

_STAYS_A_FLAG = ("--include=", "--exclude=", "--exclude-dir=")
"""What a glob behind this becomes is still this flag, with another pattern."""


class Options(NamedTuple):
    """``flags``: names as written in the table, without dashes for letters. ``files``: words that name files as values of
    flags. ``operands``: the rest."""

    flags: frozenset[str]
    files: tuple[Word, ...]
    operands: tuple[Word, ...]
    values: tuple[Word, ...] = ()
    pairs: tuple[tuple[str, Word], ...] = ()
    """Each flag that has a value, with it."""
    ended: int | None = None
    """How many operands stand before ``--``; ``None`` without one."""


@cache
def table(flags: str) -> dict[str, str]:
    """``{flag: kind}``; kinds are the notation's last character, or nothing (see ``readonly_table.py``)."""
    found: dict[str, str] = {}
    for token in flags.split():
        kind = token[-1] if token[-1] in ":@?=" and len(token) > 1 else ""
        found[token[:-1] if kind else token] = kind
    return found


def take_apart(words: list[Word], flags: str, *, dynamic: bool = False) -> Options | str:
    """Options and operands of the words behind a command's name, or what is not understood, in words.

    :param dynamic: operands may hold variables and substitutions.
    """
    known = table(flags)
    seen: set[str] = set()
    given: list[tuple[str, str, Word]] = []
    operands: list[Word] = []
    i = 0
    while i < len(words):
        word = words[i]
        text = word.value
        i += 1
        if word.dynamic or word.brace:
            if not dynamic or word.brace:
                return f"{word.text[:60]!r} is only known when it runs"
            operands.append(word)
            continue
        if not text.startswith("-") or text == "-":
            operands.append(word)
            continue
        if text == "--":
            rest = words[i:]
            if any(w.brace or (w.dynamic and not dynamic) for w in rest):
                return "a word behind -- is only known when it runs"
            return _options(seen, [*operands, *rest], given)._replace(ended=len(operands))
        if "\\" in word.text:
            return f"a backslash in the flag {word.text[:60]!r}"
        if word.glob and not text.startswith(_STAYS_A_FLAG):
            return f"a glob in the flag {word.text[:60]!r}"
        fault = _flag(text, word, words, i, known, seen, given)
        if isinstance(fault, str):
            return fault
        i = fault
    return _options(seen, operands, given)


def _options(seen: set[str], operands: list[Word], given: list[tuple[str, str, Word]]) -> Options:
    files = tuple(word for _, kind, word in given if kind == "@")
    pairs = tuple((flag, word) for flag, kind, word in given if kind != "@")
    return Options(frozenset(seen), files, tuple(operands), tuple(word for _, word in pairs), pairs)


def _flag(text: str, word: Word, words: list[Word], i: int, known: dict[str, str], seen: set[str],
          given: list[tuple[str, str, Word]]) -> int | str:
    """Note one flag; where to go on, or what is wrong."""
    unknown = f"the flag {text[:60]!r} is not on its list"
    if text.startswith("--"):
        name, equals, _ = text.partition("=")
        kind = known.get(name)
        if kind is None or (equals and not kind):
            return unknown
        seen.add(name)
        if kind in ("=", "@", ":") and not equals:
            return _value(name, kind, words, i, given)
        if equals:
            if not word.plain and "=" not in word.parts[0].text:
                return f"quotes inside the flag {word.text[:60]!r}"
            given.append((name, kind, _tail(word, len(name) + 1)))
        return i
    if text[1:].isdigit() and "-#" in known:
        seen.add("#")
        return i
    for n, letter in enumerate(text[1:], 1):
        kind = known.get(letter)
        if kind is None:
            return unknown
        seen.add(letter)
        if kind == "?" and n + 1 < len(text):
            return i
        if kind in (":", "@"):
            if n + 1 == len(text):
                return _value(letter, kind, words, i, given)
            given.append((letter, kind, _tail(word, n + 1)))
            return i
    return i


def _value(flag: str, kind: str, words: list[Word], i: int, given: list[tuple[str, str, Word]]) -> int | str:
    if i >= len(words):
        return f"the flag {flag!r} lacks its value"
    word = words[i]
    if word.dynamic or word.brace or word.glob:
        return f"the value {word.text[:60]!r} is only known when it runs"
    given.append((flag, kind, word))
    return i + 1


def _tail(word: Word, start: int) -> Word:
    """The value glued to a flag, as a literal word: the whole word is literal here."""
    from .syntax import literal_word

    return literal_word(word.value[start:], quoted=True)
