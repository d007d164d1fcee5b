"""The head of a Markdown file: YAML between two lines ``---`` (skills contract, section 3).

Values follow YAML 1.2: ``yes`` is text, a date is text, tags mean nothing, the last of two equal keys counts. Nothing but
text, numbers, Booleans, ``None``, lists and maps comes out, in bounded size and depth. What does not parse is mended where
the contract says how; otherwise the fields are lost, the body stays, and ``lost`` is set so that callers take the safe side.

Simple heads are read without a YAML parser, which is then never imported; they give what the parser would give.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

MAX_FILE = 1_000_000
"""Bytes of a component file; a larger one is not read."""
MAX_HEAD = 64_000
"""Characters of the YAML block; a longer one does not parse."""
MAX_NODES = 10_000
"""Values in one block, counting what an alias repeats; a long text counts once more for each 100 characters."""
MAX_DEPTH = 60
_FIRST_READ = 8_192


class Frontmatter(Struct, kw_only=True):
    """What a file says about itself, and its text.

    ``present``: there is a block. ``lost``: there was one and its fields could not be had, so flags that would restrict may
    be among them. ``readable``: false where there is no text either. ``problem`` says in words what is wrong, with the line
    of the file where it is known; empty where all is well.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    body: str = ""
    present: bool = False
    lost: bool = False
    readable: bool = True
    problem: str = ""


def read_frontmatter(path: str | os.PathLike[str], *, body: bool = True, limit: int = MAX_FILE) -> Frontmatter:
    """The frontmatter of a file. Never raises and never waits: what is no regular file is not opened for reading.

    :param body: false reads no more than the head needs; ``body`` is then only the beginning of the text (up to 8 KiB).
    :param limit: bytes above which a file counts as unreadable.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        return _unreadable(f"cannot be read: {getattr(error, 'strerror', None) or error}")
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return _unreadable("is no regular file")
        if status.st_size > limit:
            return _unreadable(f"is larger than {limit:,} bytes")
        raw = _read(descriptor, limit + 1 if body else _FIRST_READ)
        while not body and len(raw) < 4 * MAX_HEAD and _is_open(raw) and (more := _read(descriptor, len(raw))):
            raw += more
    except OSError as error:
        return _unreadable(f"cannot be read: {error.strerror}")
    finally:
        os.close(descriptor)
    if len(raw) > limit:  # it grew
        return _unreadable(f"is larger than {limit:,} bytes")
    if b"\0" in raw:
        return _unreadable("holds NUL bytes: it is no UTF-8 text")
    return parse_frontmatter(raw.decode("utf-8", "replace"))


def _unreadable(problem: str) -> Frontmatter:
    return Frontmatter(readable=False, problem=problem)


def _read(descriptor: int, size: int) -> bytes:
    parts = []
    while size > 0 and (part := os.read(descriptor, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _is_open(raw: bytes) -> bool:
    """Whether a block begins here that does not end here."""
    return raw.removeprefix(b"\xef\xbb\xbf").startswith(b"---") and not re.search(rb"[\r\n]---[ \t]*[\r\n]", raw)


def parse_frontmatter(text: str) -> Frontmatter:
    """The frontmatter of a text. A byte-order mark and any kind of line end are fine; the body has plain line ends."""
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    opening, rest = text.partition("\n")[::2]
    if opening.rstrip(" \t") != "---":
        misplaced = not opening.strip() and text.lstrip().startswith("---\n")
        return Frontmatter(body=text, problem="something stands before the opening line '---', so there is no frontmatter"
                           if misplaced else "")
    closing = _CLOSE.search(rest)
    if closing is None:
        return Frontmatter(body=text, lost=_KEY.match(rest) is not None,
                           problem="the frontmatter has no closing line '---', so there is none")
    return _parsed(rest[:closing.start()], rest[closing.end():])


_CLOSE = re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)
_KEY = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:[ \t]+(\S.*)")


def _parsed(head: str, body: str) -> Frontmatter:
    simple = _simple(head)
    if simple is not None:
        return Frontmatter(fields=simple, body=body, present=True)
    if len(head) > MAX_HEAD:
        return Frontmatter(body=body, present=True, lost=True, problem=f"the frontmatter is longer than {MAX_HEAD:,} characters")
    try:
        value, problem = _load(head), ""
    except ValueError as error:
        problem = str(error)
        mended = _mended(head)
        try:
            value = _load(mended)
        except ValueError:
            return Frontmatter(body=body, present=True, lost=True,
                               problem=f"the frontmatter does not parse, so its fields are lost: {problem}")
        problem = f"the frontmatter was mended: a value should be in quotes ({problem})"
    if isinstance(value, dict):
        return Frontmatter(fields=value, body=body, present=True, problem=problem)
    found = "empty" if value is None else "a list" if isinstance(value, list) else "a single value"
    return Frontmatter(body=body, present=True, lost=value is not None,
                       problem=f"the frontmatter must be a map of 'key: value' lines, it is {found}")


# -- without a parser ----------------------------------------------------------------------------------------------------
_LINE = re.compile(r"""([A-Za-z_][\w-]{0,100}):[ ]+(?:"([^"\\\n]*)"|'([^'\n]*)'|([A-Za-z0-9(/.][^\n]*))[ ]*""", re.ASCII)
_CONTROL = re.compile("[\x00-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_PUNCTUATION = re.compile(r":(?: |$)| \#")
"""What would end a plain value, or make a map of it."""
_BLANK = re.compile(r" *(?:#.*)?")


def _simple(head: str) -> dict[str, Any] | None:
    """The fields, where every line is blank, a comment, or a key with a value on the same line; else ``None``."""
    fields: dict[str, Any] = {}
    if len(head) > MAX_HEAD or head.count("\n") > 1_000 or _CONTROL.search(head.replace("\n", "")):
        return None
    for line in head.split("\n"):
        match = _LINE.fullmatch(line)
        if match is None:
            if _BLANK.fullmatch(line):
                continue
            return None
        key, double, single, plain = match.groups()
        if plain is None:
            fields[key] = single if double is None else double
        elif _PUNCTUATION.search(plain := plain.rstrip(" ")):
            return None
        else:
            fields[key] = scalar(plain)
    return fields or None


# -- with a parser ---------------------------------------------------------------------------------------------------------
_INT = re.compile(r"[-+]?[0-9]{1,300}|0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS = {"": None, "~": None, "null": None, "Null": None, "NULL": None,
          "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def scalar(text: str) -> Any:
    """The value of a scalar without quotes (YAML 1.2 core, without infinity)."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    return float(text) if _FLOAT.fullmatch(text) else text


def _load(text: str) -> Any:
    """The value of a YAML text.

    :raises ValueError: it does not parse, or is too large; the text says where.
    """
    import yaml

    try:
        return _Builder().build(yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 2}, column {mark.column + 1}" if mark else ""
        raise ValueError(f"{error.problem or error.context or 'no YAML'}{where}") from None
    except (yaml.YAMLError, RecursionError, UnicodeError) as error:
        raise ValueError(str(error).partition("\n")[0] or type(error).__name__) from None


class _Builder:
    """Builds values from parser events with a stack of its own, so depth and size are ours to limit."""

    def __init__(self) -> None:
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.nodes = 0
        self.value: Any = None

    def build(self, events: Iterator[Any]) -> Any:
        for event in events:
            kind = type(event).__name__
            if kind in ("MappingStartEvent", "SequenceStartEvent"):
                if len(self.stack) >= MAX_DEPTH:
                    raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
                self.count(1)
                self.stack.append(_Open({} if kind[0] == "M" else [], event.anchor, self.nodes))
            elif kind in ("MappingEndEvent", "SequenceEndEvent"):
                done = self.stack.pop()
                self.put(done.value, done.anchor, self.nodes - done.start + 1)
            elif kind == "ScalarEvent":
                size = 1 + len(event.value) // 100
                self.count(size)
                # A tag says nothing but that the value is text.
                plain = event.implicit[0] and not self.wants_key
                self.put(scalar(event.value) if plain else event.value, event.anchor, size)
            elif kind == "AliasEvent":
                if event.anchor not in self.anchors:
                    raise ValueError(f"the alias *{event.anchor} names nothing before it, line {event.start_mark.line + 2}")
                value, size = self.anchors[event.anchor]
                self.count(size)
                self.put(value, None, size)
            elif kind == "DocumentStartEvent" and event.start_mark.index and self.nodes:
                raise ValueError(f"a second document begins, line {event.start_mark.line + 2}")
        return self.value

    @property
    def wants_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].value, dict) and self.stack[-1].key is None

    def count(self, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            raise ValueError(f"more than {MAX_NODES:,} values")

    def put(self, value: Any, anchor: str | None, size: int) -> None:
        if anchor is not None:
            self.anchors[anchor] = value, size
        if not self.stack:
            self.value = value
        elif isinstance(self.stack[-1].value, list):
            self.stack[-1].value.append(value)
        else:
            self.stack[-1].pair(value)


class _Open(Struct):
    """A list or map that is not finished; a map alternates between a key and its value."""

    value: Any
    anchor: str | None
    start: int
    key: str | None = None

    def pair(self, item: Any) -> None:
        if self.key is None:
            if isinstance(item, list | dict):
                raise ValueError("a key must be text, not a list or a map")
            self.key = item if isinstance(item, str) else "" if item is None else str(item)
        else:
            self.value[self.key] = item
            self.key = None


def _mended(head: str) -> str:
    """The block with every top-level plain value in quotes that is no single value as it stands (contract, 3.2)."""
    lines = head.split("\n")
    for number, line in enumerate(lines):
        match = _KEY.fullmatch(line)
        if match and match[2][0] not in "\"'|>" and not _stands_alone(match[2]):
            quoted = match[2].rstrip().replace("'", "''")
            lines[number] = f"{match[1]}: '{quoted}'"
    return "\n".join(lines)


def _stands_alone(text: str) -> bool:
    try:
        value = _load(text)
    except ValueError:
        return False
    return not isinstance(value, dict) or text.startswith("{")
