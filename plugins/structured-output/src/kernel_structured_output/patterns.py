"""Patterns of JSON Schema are ECMA's: as Python writes them, and which of them may take very long (section 2)."""

from __future__ import annotations

import re

LONG = 20_000
"""Characters of a value; a longer one is checked where it can be given up."""
_CLASS_ESCAPES = {"d": "0-9", "w": "A-Za-z0-9_"}
_TAKES_LONG = re.compile(r"\)[*+{]|\\[1-9]|\(\?P=|\(\?<?[=!]")
_UNBOUNDED = re.compile(r"(?<!\\)[*+]|\{\d+,\}")


def python(pattern: str) -> str:
    """The same pattern in Python's dialect.

    :raises ValueError: it cannot be written there.
    """
    out: list[str] = []
    place, in_class = 0, False
    while place < len(pattern):
        two = pattern[place:place + 2]
        one = pattern[place]
        if one == "\\" and len(two) == 2:
            out.append(_escape(pattern, place, in_class))
            place += pattern.index(">", place) + 1 - place if two == "\\k" and ">" in pattern[place:] else 2
            continue
        if in_class:
            in_class = one != "]"
            out.append("\\[" if one == "[" else one)
        elif pattern.startswith(("[^]", "[]"), place):
            out.append(r"[\s\S]" if pattern.startswith("[^]", place) else "(?!)")
            place += 3 if pattern.startswith("[^]", place) else 2
            continue
        elif pattern.startswith("(?<", place) and pattern[place + 3:place + 4] not in ("=", "!"):
            out.append("(?P<")
            place += 3
            continue
        else:
            in_class = one == "["
            out.append(r"\Z" if one == "$" else one)
        place += 1
    made = "".join(out)
    try:
        re.compile(made)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from None
    return made


def _escape(pattern: str, place: int, in_class: bool) -> str:
    letter = pattern[place + 1]
    if letter in _CLASS_ESCAPES:
        return _CLASS_ESCAPES[letter] if in_class else f"[{_CLASS_ESCAPES[letter]}]"
    if letter in "DW" and not in_class:
        return f"[^{_CLASS_ESCAPES[letter.lower()]}]"
    if letter == "k" and pattern.startswith("<", place + 2) and ">" in pattern[place:]:
        return f"(?P={pattern[place + 3:pattern.index('>', place)]})"
    return pattern[place:place + 2] if letter != "/" else "/"


def may_take_long(pattern: str, size: int) -> bool:
    """Whether a search in a value of that many characters may go on for ever, as far as can be told from the pattern."""
    return size > LONG or bool(_TAKES_LONG.search(pattern)) or (size > 500 and len(_UNBOUNDED.findall(pattern)) > 1)
