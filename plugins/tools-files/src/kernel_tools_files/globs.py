"""Globs, matched name by name on the way down a tree, so that folders which cannot hold a match are never entered.

``**`` crosses folders, ``*`` and ``?`` stay within a name and match hidden names too, ``[...]`` is one character of a set
(``[!...]`` and ``[^...]``: none of it), ``{a,b}`` alternatives, ``\\`` takes the next character literally. A pattern without a
slash matches at any depth. A broken bracket matches nothing. Time is linear in the length of a name.

Free of the kernel, since the search fallback runs in a process of its own.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

MAX_ALTERNATIVES = 1_000
WILD = frozenset("*?[{")

States = frozenset[tuple[int, int]]


class Globs:
    """One pattern; a state is (alternative, segment).

    :raises ValueError: too many alternatives, or ``..`` behind a wildcard. The text is for the model.
    """

    def __init__(self, pattern: str, *, any_depth: bool | None = None) -> None:
        self._alternatives = [_segments(p, any_depth) for p in expand(pattern)]
        self.start: States = self._closure({(a, 0) for a in range(len(self._alternatives))})
        self._anywhere: dict[States, re.Pattern[str] | None] = {}

    def _closure(self, states: set[tuple[int, int]]) -> States:
        """A ``**`` may also match no folder at all."""
        out = set(states)
        for a, at in states:
            segments = self._alternatives[a]
            while at < len(segments) - 1 and segments[at] == "**":
                at += 1
                out.add((a, at))
        return frozenset(out)

    def step(self, states: States, name: str) -> tuple[States, bool]:
        """The states below a folder of that name, and whether something of that name at this place matches."""
        after: set[tuple[int, int]] = set()
        matched = False
        for a, at in states:
            segments = self._alternatives[a]
            last = at == len(segments) - 1
            if segments[at] == "**":
                after.add((a, at))
                matched = matched or last
            elif matches(segments[at], name):
                if last:
                    matched = True
                else:
                    after.add((a, at + 1))
        return self._closure(after), matched

    def anywhere(self, states: States) -> re.Pattern[str] | None:
        """Where every name leads on to the same states (``**/*.py``): what a name must look like to match. ``None`` elsewhere;
        then ``step`` must be asked about each name."""
        if states not in self._anywhere:
            self._anywhere[states] = self._same_everywhere(states)
        return self._anywhere[states]

    def _same_everywhere(self, states: States) -> re.Pattern[str] | None:
        patterns: list[str] = []
        stays: set[tuple[int, int]] = set()
        for a, at in states:
            segment = self._alternatives[a][at]
            last = at == len(self._alternatives[a]) - 1
            if segment == "**":
                stays.add((a, at))
                patterns += [".*"] if last else []
            elif not last:
                return None
            elif compiled := _compiled(segment):
                patterns.append(compiled.pattern)
        if self._closure(stays) != states:
            return None
        return re.compile("|".join(f"(?:{p})" for p in patterns) or "(?!)", re.DOTALL)

    def names(self, states: States, name: str) -> bool:
        """Whether the pattern says the name literally at this place."""
        return any(self._alternatives[a][at] == name for a, at in states)

    def covers(self, names: list[str]) -> bool:
        """Whether a path below the root, given by its names, matches."""
        states, matched = self.start, False
        for name in names:
            states, matched = self.step(states, name)
        return matched


def _segments(pattern: str, any_depth: bool | None) -> list[str]:
    parts = [p for p in pattern.split("/") if p not in ("", ".")]
    if ".." in parts:
        raise ValueError("'..' cannot stand behind a wildcard or in braces; give the folder in path")
    if pattern.endswith("/"):
        parts.append("**")
    if any_depth if any_depth is not None else "/" not in pattern.strip("/"):
        parts.insert(0, "**")
    out: list[str] = []
    for part in parts:
        if part != "**" or not out or out[-1] != "**":
            out.append(part)
    return out or ["**"]


def expand(pattern: str) -> list[str]:
    """The alternatives of all braces. Braces that do not pair are literal."""
    done: list[str] = []
    todo = [pattern]
    while todo:
        if len(done) + len(todo) > MAX_ALTERNATIVES:
            raise ValueError(f"more than {MAX_ALTERNATIVES} alternatives in braces")
        head = todo.pop()
        found = _braces(head)
        if found is None:
            done.append(head)
        else:
            start, end, inner = found
            todo += [head[:start] + alternative + head[end:] for alternative in reversed(inner)]
    return done


def _braces(pattern: str) -> tuple[int, int, list[str]] | None:
    """The first pair of braces: where it starts and ends, and its alternatives."""
    opened: list[int] = []
    commas: list[list[int]] = []
    found: dict[int, tuple[int, list[int]]] = {}
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            at += 1
        elif character == "[" and (end := _bracket_end(pattern, at)):
            at = end
        elif character == "{":
            opened.append(at)
            commas.append([])
        elif character == "," and opened:
            commas[-1].append(at)
        elif character == "}" and opened:
            found[opened.pop()] = at, commas.pop()
        at += 1
    if not found:
        return None
    start = min(found)
    end, cuts = found[start]
    edges = [start, *cuts, end]
    return start, end + 1, [pattern[a + 1:b] for a, b in pairwise(edges)]


def _bracket_end(pattern: str, at: int) -> int:
    """The place of the ``]`` that closes the bracket at ``at``; 0 where it is not closed within its name."""
    end = at + 1
    if pattern[end:end + 1] in ("!", "^"):
        end += 1
    end = pattern.find("]", end + 1)  # one right behind the opening is a member of the set
    return 0 if end < 0 or "/" in pattern[at:end] else end


def matches(segment: str, name: str) -> bool:
    """Whether a name matches one segment of a pattern."""
    if WILD.isdisjoint(segment) and "\\" not in segment:
        return segment == name
    pattern = _compiled(segment)
    return pattern is not None and pattern.fullmatch(name) is not None


@lru_cache(maxsize=4096)
def _compiled(segment: str) -> re.Pattern[str] | None:
    """``None`` for a broken bracket. Between two stars the first place that fits is as good as any other, so the search for it
    never has to be taken up again: an atomic group keeps the time linear."""
    pieces = [""]
    at = 0
    while at < len(segment):
        character = segment[at]
        if character == "*":
            pieces.append("")
        elif character == "?":
            pieces[-1] += "."
        elif character == "[":
            end = _bracket_end(segment, at)
            made = _set(segment[at + 1:end]) if end else None
            if made is None:
                return None
            pieces[-1] += made
            at = end
        else:
            if character == "\\" and at + 1 < len(segment):
                at += 1
            pieces[-1] += re.escape(segment[at])
        at += 1
    first, *rest = pieces
    if not rest:
        return re.compile(first, re.DOTALL)
    middle = "".join(f"(?>.*?{piece})" for piece in rest[:-1] if piece)
    return re.compile(f"{first}{middle}.*{rest[-1]}", re.DOTALL)


def _set(inner: str) -> str | None:
    """A bracket's content as a set; ``None`` for a range that runs backwards."""
    negated = inner[:1] in ("!", "^")
    inner = inner[1:] if negated else inner
    out, at = "", 0
    while at < len(inner):
        low = inner[at]
        if inner[at + 1:at + 2] == "-" and at + 2 < len(inner):
            high = inner[at + 2]
            if low > high:
                return None
            out += f"{re.escape(low)}-{re.escape(high)}"
            at += 3
        else:
            out += re.escape(low)
            at += 1
    return f"[{'^' if negated else ''}{out}]"
