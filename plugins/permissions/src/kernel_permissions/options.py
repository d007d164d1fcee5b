"""Command lines taken apart by a table of flags. What the table does not name is not understood."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from .syntax import Word


class Options(NamedTuple):
    """``flags``: names as written in the table, without dashes for letters. ``files``: words that name files as values of
    flags. ``operands``: the rest."""

    flags: frozenset[str]
    files: tuple[Word, ...]
    operands: tuple[Word, ...]
    values: tuple[Word, ...] = ()


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
    files: list[Word] = []
    values: list[Word] = []
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
            return Options(frozenset(seen), tuple(files), (*operands, *rest), tuple(values))
        if "\\" in word.text:
            return f"a backslash in the flag {word.text[:60]!r}"
        if word.glob:
            return f"a glob in the flag {word.text[:60]!r}"
        fault = _flag(text, word, words, i, known, seen, files, values)
        if isinstance(fault, str):
            return fault
        i = fault
    return Options(frozenset(seen), tuple(files), tuple(operands), tuple(values))


def _flag(text: str, word: Word, words: list[Word], i: int, known: dict[str, str], seen: set[str], files: list[Word],
          values: list[Word]) -> int | str:
    """Note one flag; where to go on, or what is wrong."""
    unknown = f"the flag {text[:60]!r} is not on its list"
    if text.startswith("--"):
        name, equals, _ = text.partition("=")
        kind = known.get(name)
        if kind is None or (equals and not kind):
            return unknown
        seen.add(name)
        if kind in ("=", "@", ":") and not equals:
            return _value(kind, words, i, files, values, text)
        if equals:
            if not word.plain and "=" not in word.parts[0].text:
                return f"quotes inside the flag {word.text[:60]!r}"
            (files if kind == "@" else values).append(_tail(word, len(name) + 1))
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
                return _value(kind, words, i, files, values, text)
            (files if kind == "@" else values).append(_tail(word, n + 1))
            return i
    return i


def _value(kind: str, words: list[Word], i: int, files: list[Word], values: list[Word], flag: str) -> int | str:
    if i >= len(words):
        return f"the flag {flag!r} lacks its value"
    word = words[i]
    if word.dynamic or word.brace or word.glob:
        return f"the value {word.text[:60]!r} is only known when it runs"
    (files if kind == "@" else values).append(word)
    return i + 1


def _tail(word: Word, start: int) -> Word:
    """The value glued to a flag, as a literal word: the whole word is literal here."""
    from .syntax import literal_word

    return literal_word(word.value[start:], quoted=True)
