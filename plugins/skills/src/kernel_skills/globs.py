"""Patterns of ``paths``: ``**``, ``*``, ``?``, ``{a,b}``, ``[...]``, relative to the project (context contract, section 3)."""

from __future__ import annotations

import os
import re
from functools import lru_cache

MAX_EXPANDED = 1_000


def matches(patterns: list[str], path: str, root: str) -> bool:
    """Whether a file, as it was named or with links followed, is one that the patterns mean."""
    given = {os.path.relpath(p, r) for p in (path, os.path.realpath(path)) for r in (root, os.path.realpath(root))}
    inside = [p.replace(os.sep, "/") for p in given if not p.startswith("..")]
    return any(regex.fullmatch(p) for regex in _compiled(tuple(patterns)) for p in inside)


@lru_cache(maxsize=512)
def _compiled(patterns: tuple[str, ...]) -> list[re.Pattern[str]]:
    left = MAX_EXPANDED
    found: list[re.Pattern[str]] = []
    for pattern in patterns:
        expanded = braces(pattern, left) if "{" in pattern else [pattern]
        if expanded is None:  # over the budget: it stays as it is and matches nothing
            continue
        left -= len(expanded) if "{" in pattern else 0
        for one in expanded:
            try:
                found.append(re.compile(regex(one.removeprefix("./").removeprefix("/"))))
            except re.error:  # a broken bracket matches nothing
                continue
    return found


def braces(pattern: str, limit: int) -> list[str] | None:
    """Every alternative of ``{a,b}``; ``None`` where there are more than the limit."""
    done: list[str] = []
    todo = [pattern]
    while todo:
        if len(done) + len(todo) > limit:
            return None
        text = todo.pop()
        match = re.search(r"\{([^{}]*,[^{}]*)\}", text)
        if match is None:
            done.append(text)
        else:
            todo += [text[:match.start()] + part + text[match.end():] for part in match[1].split(",")]
    return done


def regex(pattern: str) -> str:
    """A pattern as a regular expression for a whole relative path.

    :raises re.error: a bracket does not close.
    """
    out, n = "", 0
    while n < len(pattern):
        char = pattern[n]
        if pattern.startswith("**/", n):
            out, n = out + "(?:[^/]+/)*", n + 3
        elif pattern.startswith("**", n):
            out, n = out + ".*", n + 2
        elif char == "[":
            end = pattern.find("]", n + 2)
            if end < 0:
                raise re.error("a bracket does not close")
            inner = pattern[n + 1:end].replace("\\", "\\\\")
            out, n = out + "[" + ("^" + inner[1:] if inner[0] in "!^" else inner) + "]", end + 1
        elif char == "\\" and n + 1 < len(pattern):
            out, n = out + re.escape(pattern[n + 1]), n + 2
        else:
            out, n = out + {"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char)), n + 1
    return out
