"""Patterns of ``paths``: ``**``, ``*``, ``?``, ``{a,b}``, ``[...]``, relative to the project (context contract, section 3).

Matching takes time in proportion to pattern times path, whatever a pattern looks like: skills come with a clone.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache

MAX_EXPANDED = 1_000
MAX_CHARACTERS = 1_000_000
"""What the braces of one skill may come to."""

Segment = re.Pattern[str] | None
"""What one part of a path must be; ``None`` for ``**``, any number of parts."""


def inside(path: str, root: str) -> list[list[str]]:
    """The parts of a file's path below the project, as it was named and with links followed; empty for a file elsewhere."""
    given = {os.path.relpath(p, r) for p in (path, os.path.realpath(path)) for r in (root, os.path.realpath(root))}
    return [p.split(os.sep) for p in given if p != ".." and not p.startswith(f"..{os.sep}")]


def matches(patterns: list[str], paths: list[list[str]]) -> bool:
    """:param paths: what ``inside`` says of one file or of several; one of them is enough."""
    return any(_match(pattern, parts) for pattern in _compiled(tuple(patterns)) for parts in paths)


@lru_cache(maxsize=512)
def _compiled(patterns: tuple[str, ...]) -> list[list[Segment]]:
    left = MAX_EXPANDED
    found: list[list[Segment]] = []
    for pattern in patterns:
        expanded = braces(pattern, left) if "{" in pattern else [pattern]
        if expanded is None:  # over the budget: it stays as it is and matches nothing
            continue
        left -= len(expanded) if "{" in pattern else 0
        for one in expanded:
            try:
                found.append([segment(part) for part in one.removeprefix("./").strip("/").split("/")])
            except re.error:  # a broken bracket matches nothing
                continue
    return found


def braces(pattern: str, limit: int) -> list[str] | None:
    """Every alternative of ``{a,b}``; ``None`` where there are more than the limit."""
    done: list[str] = []
    todo, size = [pattern], len(pattern)
    while todo:
        text = todo.pop()
        match = re.search(r"\{([^{},]*,[^{}]*)\}", text)
        if match is None:
            done.append(text)
            continue
        parts = match[1].split(",")
        size += len(parts) * (len(text) - len(match[0])) + len(match[1])
        if len(done) + len(todo) + len(parts) > limit or size > MAX_CHARACTERS:
            return None
        todo += [text[:match.start()] + part + text[match.end():] for part in parts]
    return done


@lru_cache(maxsize=4096)
def segment(text: str) -> Segment:
    """A pattern for one part of a path. What stands between two ``*`` is taken where it comes first, and never tried again.

    :raises re.error: a bracket does not close.
    """
    if text == "**":
        return None
    between, last = [], ""
    n = 0
    while n < len(text):
        char = text[n]
        if char == "*":
            between.append(last)
            last = ""
        elif char == "[":
            end = text.find("]", n + 2)
            if end < 0:
                raise re.error("a bracket does not close")
            negated = text[n + 1] in "!^"
            inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", text[n + 1 + negated:end])
            last, n = f"{last}[{'^' if negated else ''}{inner}]", end
        elif char == "\\" and n + 1 < len(text):
            n += 1
            last += re.escape(text[n])
        else:
            last += "." if char == "?" else re.escape(char)
        n += 1
    if not between:
        return re.compile(last, re.DOTALL)
    middle = "".join(f"(?>.*?{part})" for part in between[1:] if part)
    return re.compile(f"{between[0]}{middle}.*{last}", re.DOTALL)


def _match(pattern: list[Segment], path: list[str]) -> bool:
    """Whether the parts match, with one step back to the latest ``**``."""
    p = s = 0
    star, mark = -1, 0
    while s < len(path):
        part = pattern[p] if p < len(pattern) else None
        if p < len(pattern) and part is None:
            star, mark, p = p, s, p + 1
        elif part is not None and part.fullmatch(path[s]):
            p, s = p + 1, s + 1
        elif star >= 0:
            mark += 1
            p, s = star + 1, mark
        else:
            return False
    return all(part is None for part in pattern[p:])
