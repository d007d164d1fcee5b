"""Where an edit applies, and what the text becomes. Pure functions over strings (tools contract, section 5, details).

A text is taken exactly as written. Two things count as equal because the model cannot see them: a line end of either
kind, in files with carriage returns; and a curly quote, for which models type the straight one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

QUOTES = {'"': '"“”„‟', "'": "'‘’‚‛"}
_CURLY = re.compile("[“”„‟‘’‚‛]")


class Match(NamedTuple):
    """``spans``: places in the text, in order. ``times``: how often it occurs, overlaps included where that makes it ambiguous.

    ``exact``: the same characters, line ends aside.
    """

    spans: list[tuple[int, int]]
    times: int
    exact: bool


def find(text: str, old: str) -> Match:
    """All places of ``old`` (not empty), the exact ones first; curly quotes count only where there is no exact place."""
    lenient_ends = "\r\n" in text and "\n" in old
    pattern = _pattern(old, lenient_ends, quotes=False)
    spans = _spans(text, pattern) if lenient_ends else _plain(text, old)
    exact = bool(spans)
    if not spans and any(q in old for q in QUOTES) and _CURLY.search(text):
        pattern = _pattern(old, lenient_ends, quotes=True)
        spans = _spans(text, pattern)
    times = len(spans)
    if times == 1 and pattern.search(text, spans[0][0] + 1):
        times = 2  # it overlaps itself: which of the two is meant is not known
    return Match(spans, times, exact)


def replace(text: str, match: Match, old: str, new: str) -> str:
    """The text with every span replaced. Line ends of ``new`` follow the place; curly quotes that were matched stay."""
    parts: list[str] = []
    at = 0
    returns = "\r\n" in text and "\n" in new
    for start, end in match.spans:
        parts.append(text[at:start])
        there = new if match.exact else keep_quotes(text[start:end], old, new)
        parts.append(with_returns(there) if returns and _ends_with_return(text, start, end) else there)
        at = end
    parts.append(text[at:])
    return "".join(parts)


def with_returns(text: str) -> str:
    """Every line end as carriage return and line feed."""
    return re.sub(r"(?<!\r)\n", "\r\n", text)


def only_returns(text: str) -> bool:
    """Whether the text has line ends, and all of them carriage returns too."""
    return "\r\n" in text and text.count("\n") == text.count("\r\n")


def _plain(text: str, old: str) -> list[tuple[int, int]]:
    spans, at = [], text.find(old)
    while at >= 0:
        spans.append((at, at + len(old)))
        at = text.find(old, at + len(old))
    return spans


def _spans(text: str, pattern: re.Pattern[str]) -> list[tuple[int, int]]:
    return [found.span() for found in pattern.finditer(text)]


def _pattern(old: str, lenient_ends: bool, *, quotes: bool) -> re.Pattern[str]:
    # A line end matches as a whole: a match that began between its two characters would tear it apart.
    special = {q: f"[{all}]" for q, all in QUOTES.items()} if quotes else {}
    if lenient_ends:
        old = old.replace("\r\n", "\n")
        special["\n"] = r"(?:\r\n|(?<!\r)\n)"
    return re.compile("".join(special.get(c) or re.escape(c) for c in old))


def _ends_with_return(text: str, start: int, end: int) -> bool:
    """Whether the place's lines end with a carriage return: the match's own first line end, the next one, or the one before."""
    at = text.find("\n", start)
    if at < 0:
        at = text.rfind("\n", 0, start)
    return at > 0 and text[at - 1] == "\r"


def keep_quotes(found: str, old: str, new: str) -> str:
    """``new`` with the quotes that ``found`` has where the model typed straight ones.

    What ``old`` and ``new`` have in common at both ends is taken from ``found``; in between, quotes become curly if those
    of the same kind in ``found`` are.
    """
    if len(found) != len(old):  # line ends differ as well
        found = found.replace("\r\n", "\n")
        old = old.replace("\r\n", "\n")
    front, shorter = 0, min(len(old), len(new))
    while front < shorter and old[front] == new[front]:
        front += 1
    back = 0
    while back < shorter - front and old[-1 - back] == new[-1 - back]:
        back += 1
    middle = list(new[front:len(new) - back])
    for at, character in enumerate(middle):
        if character in QUOTES and any(curly in found for curly in QUOTES[character][1:]):
            before = middle[at - 1] if at else (found[front - 1] if front else " ")
            opening = before.isspace() or before in "([{<—–“‘"
            middle[at] = {'"': "“”", "'": "‘’"}[character][0 if opening else 1]
    return found[:front] + "".join(middle) + found[len(found) - back:]


# -- hints ----------------------------------------------------------------------------------------------------------------
def why_not(text: str, old: str) -> str:
    """What may be wrong with an ``old_string`` that does not occur."""
    wanted = old.strip("\n").split("\n")
    if all(re.match(r"\s*\d+\t", line) for line in wanted):
        return "It seems to hold the line numbers that Read puts in front; leave out the number and the tab behind it."
    lines = [line.strip() for line in text.split("\n")]
    stripped = [line.strip() for line in wanted]
    first = next((s for s in stripped if s), None)
    if first is not None and len(stripped) <= len(lines):
        skip = stripped.index(first)
        for at, line in enumerate(lines):
            if line == first and at >= skip and lines[at - skip:at - skip + len(stripped)] == stripped:
                return (f"Lines {at - skip + 1} to {at - skip + len(stripped)} differ from it in white space only; take the text "
                        "exactly as it stands there.")
    return "It must match exactly, white space and line breaks included."
