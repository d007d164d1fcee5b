"""Instruction files as text: read within limits, without comments, with the places that name other files.

(context contract, 2.1 to 2.3)
"""

from __future__ import annotations

import os
import re
import stat
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice

MAX_BYTES = 4 * 1024 * 1024
"""Of one file; a larger one is skipped."""
LONG = 40_000
"""Characters above which a file is named in the diagnostics."""
MAX_IMPORTS = 1_000
"""Names of other files that are looked at in one file."""

MAX_PIECES = 10_000
MAX_RUNS = 20_000
"""Code blocks and comments of one file, back-tick runs of one paragraph: what lies behind is taken as it is."""
_FAR = 100_000
_BLANK = re.compile(r"\n[ \t]*\n")
_START = re.compile(r"^ {0,3}(?:(`{3,})[^`\n]*$|(~{3,})[^\n]*$|(<!--))", re.MULTILINE)
_END = re.compile(r"-->")
_RUN = re.compile(r"`+")
_IMPORT = re.compile(r"(?<!\S)@((?:\\ |\S)+)")


class Unusable(Exception):
    """A file is skipped; the text says why."""


def read(path: str) -> str:
    """The text of a regular file, with plain line ends and without a byte-order mark. Never waits.

    :raises Unusable: too large, binary, no file, not readable.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        raise Unusable(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unusable("is no regular file")
        raw = b""
        while len(raw) <= MAX_BYTES and (part := os.read(descriptor, MAX_BYTES + 1)):
            raw += part
    except OSError as error:
        raise Unusable(f"cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    if len(raw) > MAX_BYTES:
        raise Unusable(f"is larger than {MAX_BYTES:,} bytes")
    return decode(raw)


def decode(raw: bytes) -> str:
    """:raises Unusable: it is no text."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = raw.decode("utf-16", "replace")
    elif b"\0" in raw:
        raise Unusable("is binary")
    else:
        text = raw.decode("utf-8-sig", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def without_comments(text: str) -> str:
    """The text without HTML comments that begin a line; those in fenced code stay, and so does one that never ends."""
    if "<!--" not in text:
        return text
    kept, at = [], 0
    for kind, start, end in _pieces(text):
        if kind == "comment":
            kept.append(text[at:start])
            at = end + 1 if text[end:end + 1] == "\n" else end  # a comment that fills its lines takes the line end with it
    kept.append(text[at:])
    return "".join(kept)


def imports(text: str) -> list[str]:
    """The paths behind ``@`` outside code, as they are written but for escaped spaces; each once."""
    if "@" not in text:
        return []
    found: dict[str, None] = {}
    looked = 0
    for kind, start, end in _pieces(text):
        if kind != "text":
            continue
        stop = start
        spans: list[tuple[int, int]] = []
        for match in _IMPORT.finditer(text, start, end):
            looked += 1
            if looked > MAX_IMPORTS:
                return list(found)
            if match.start() >= stop:  # another paragraph
                begin, stop = _paragraph(text, match.start(), start, end)
                spans = _spans(text, begin, stop)
            n = bisect_right(spans, (match.start(), len(text))) - 1
            if (n < 0 or match.start() >= spans[n][1]) and len(match[1]) <= 1_024:
                found[match[1].replace("\\ ", " ")] = None
    return list(found)


def _paragraph(text: str, at: int, start: int, end: int) -> tuple[int, int]:
    """The lines around a place up to the next blank ones."""
    below = _BLANK.search(text, at, end)
    above = max((m.end() for m in _BLANK.finditer(text, max(start, at - _FAR), at)), default=max(start, at - _FAR))
    return above, below.start() if below else end


def _pieces(text: str) -> Iterator[tuple[str, int, int]]:
    """The text cut into ``text``, ``code`` (fenced) and ``comment``, in order."""
    at = 0
    for _ in range(MAX_PIECES):
        match = _START.search(text, at)
        if match is None:
            break
        if match[3]:
            end = _END.search(text, match.end())
            if end is None:
                break
            piece, stop = "comment", end.end()
        else:
            fence = match[1] or match[2]
            close = re.compile(rf"^ {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$", re.MULTILINE)
            end = close.search(text, match.end())
            piece, stop = "code", end.end() if end else len(text)
        if match.start() > at:
            yield "text", at, match.start()
        yield piece, match.start(), stop
        at = stop
    if at < len(text):
        yield "text", at, len(text)


def _spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Code spans: what stands between two equally long runs of back-ticks in one paragraph."""
    runs = [(m.start(), m.end()) for m in islice(_RUN.finditer(text, start, end), MAX_RUNS)]
    if len(runs) == MAX_RUNS:
        return [(start, end)]  # nobody writes this; nothing in it names a file
    by_length: dict[int, list[int]] = {}
    for n, (a, b) in enumerate(runs):
        by_length.setdefault(b - a, []).append(n)
    spans: list[tuple[int, int]] = []
    n = 0
    while n < len(runs):
        equal = by_length[runs[n][1] - runs[n][0]]
        later = bisect_right(equal, n)
        if later < len(equal):
            spans.append((runs[n][0], runs[equal[later]][1]))
            n = equal[later]
        n += 1
    return spans
