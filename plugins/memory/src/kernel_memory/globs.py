"""Patterns of ``paths`` and ``claudeMdExcludes``: ``**``, ``*``, ``?``, ``{a,b}``, ``[...]`` (context contract, section 3).

Matching takes time in proportion to pattern times path, whatever a pattern looks like: rules come with a clone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

MAX_EXPANDED = 1_000
MAX_EXPANDED_CHARS = 4 * 1024 * 1024
"""What the braces of one rule may come to. A pattern above it stays as it is and matches nothing."""

Token = str | re.Pattern[str] | None
"""A literal character, a set of characters, or ``None`` for ``*``."""
ANY = re.compile(".", re.DOTALL)


class Patterns:
    """The patterns of one rule or one setting, compiled once."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self.left, self.room = MAX_EXPANDED, MAX_EXPANDED_CHARS
        self.over: list[str] = []
        """Patterns that would come to too many."""
        self._compiled: list[tuple[tuple[Token, ...] | None, ...]] = []
        for pattern in patterns:
            for one in self._expanded(pattern):
                compiled = compile_pattern(one.removeprefix("./").strip("/") if not one.startswith("/") else one)
                if compiled is not None:
                    self._compiled.append(compiled)

    def match(self, path: str) -> bool:
        segments = path.split("/")
        return any(_match(pattern, segments) for pattern in self._compiled)

    def _expanded(self, pattern: str) -> list[str]:
        if "{" not in pattern:
            return [pattern]
        found = _braces(pattern, self.left, self.room)
        if found is None:
            self.over.append(pattern)
            return []
        if len(found) > 1:
            self.left -= len(found)
            self.room -= sum(map(len, found))
        return found


def _braces(pattern: str, limit: int, room: int) -> list[str] | None:
    """Every alternative of ``{a,b}``, inner ones first; ``None`` where there are more than the limits."""
    done: list[str] = []
    todo = [pattern]
    size = len(pattern)
    while todo:
        text = todo.pop()
        match = re.search(r"(?<!\\)\{([^{},]*,[^{}]*)\}", text)
        if match is None:
            done.append(text)
            continue
        parts = match[1].split(",")
        size += sum(len(text) - len(match[0]) + len(part) for part in parts)
        if len(done) + len(todo) + len(parts) > limit or size > room:
            return None
        todo += [text[:match.start()] + part + text[match.end():] for part in reversed(parts)]
    return done


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> tuple[tuple[Token, ...] | None, ...] | None:
    """A pattern by path segments, ``None`` standing for ``**``; ``None`` for one that matches nothing."""
    segments: list[tuple[Token, ...] | None] = []
    for text in pattern.split("/"):
        if text == "**":
            if not segments or segments[-1] is not None:
                segments.append(None)
            continue
        tokens = _tokens(text)
        if tokens is None:
            return None
        segments.append(tokens)
    return tuple(segments)


def _tokens(text: str) -> tuple[Token, ...] | None:
    tokens: list[Token] = []
    n = 0
    while n < len(text):
        char = text[n]
        if char == "*":
            if not tokens or tokens[-1] is not None:
                tokens.append(None)
        elif char == "?":
            tokens.append(ANY)
        elif char == "\\" and n + 1 < len(text):
            n += 1
            tokens.append(text[n])
        elif char == "[":
            end = text.find("]", n + 3 if text[n + 1:n + 2] in ("!", "^") else n + 2)
            if end < 0:
                return None
            inner = text[n + 1:end]
            negated = inner[0] in "!^"
            try:
                inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", inner[negated:])
                tokens.append(re.compile(f"[{'^' if negated else ''}{inner}]", re.DOTALL))
            except re.error:
                return None
            n = end
        else:
            tokens.append(char)
        n += 1
    return tuple(tokens)


def _match(pattern: tuple[tuple[Token, ...] | None, ...], path: list[str]) -> bool:
    return _stands_for(pattern, path, _segment)


def _segment(tokens: tuple[Token, ...], text: str) -> bool:
    return _stands_for(tokens, text, _one)


def _one(token: str | re.Pattern[str], char: str) -> bool:
    return token == char if isinstance(token, str) else token.match(char) is not None


def _stands_for(pattern: Sequence[Any], items: Sequence[str], fits: Callable[[Any, str], bool]) -> bool:
    """Whether the items fit the pieces; ``None`` stands for any number of items. Greedy with one step back: never exponential."""
    p = s = 0
    star, mark = -1, 0
    while s < len(items):
        piece = pattern[p] if p < len(pattern) else None
        if p < len(pattern) and piece is None:
            star, mark, p = p, s, p + 1
        elif piece is not None and fits(piece, items[s]):
            p, s = p + 1, s + 1
        elif star >= 0:
            mark += 1
            p, s = star + 1, mark
        else:
            return False
    return all(rest is None for rest in pattern[p:])
