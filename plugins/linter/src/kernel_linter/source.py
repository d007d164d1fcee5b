"""Files as the rules see them: bytes with a limit, text, JSON with positions. Reading never blocks and never raises."""

from __future__ import annotations

import json
import os
import stat
from bisect import bisect_right
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_linter.jsonindex import Index, Node
from kernel_linter.rule import Diagnostic, Edit, Fix, FixClass, Severity

if TYPE_CHECKING:
    from kernel_linter.bundle import Plugin

MAX_BYTES = 5_000_000
MAX_INDEXED = 1_000_000
"""Above this size (characters) findings in JSON point at the start of the file."""

Pointer = str | int


class File:
    """One file. ``shown`` is its name in messages; ``plugin`` the plugin it belongs to, if any."""

    def __init__(self, path: Path, shown: str, plugin: Plugin | None = None) -> None:
        self.path, self.shown, self.plugin = path, shown, plugin

    @cached_property
    def _read(self) -> tuple[bytes, str]:
        try:
            handle = os.open(self.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        except (OSError, ValueError) as error:
            return b"", f"cannot be read: {getattr(error, 'strerror', None) or error}"
        try:
            info = os.fstat(handle)
            if not stat.S_ISREG(info.st_mode):
                return b"", "is not a regular file"
            if info.st_size > MAX_BYTES:
                return b"", f"is too large to be checked: {info.st_size:,} bytes, the limit is {MAX_BYTES:,}"
            return _all(handle, info.st_size), ""
        except OSError as error:
            return b"", f"cannot be read: {error.strerror}"
        finally:
            os.close(handle)

    @property
    def raw(self) -> bytes:
        return self._read[0]

    @property
    def problem(self) -> str:
        """Why the file was not read, in words; empty if it was."""
        return self._read[1]

    @cached_property
    def text(self) -> str:
        """The whole text. A byte-order mark stays as U+FEFF, so that offsets are those of the file."""
        return self.raw.decode("utf-8", "replace")

    @property
    def bom(self) -> bool:
        return self.text.startswith("\ufeff")

    @cached_property
    def _lines(self) -> list[int]:
        starts, at = [0], self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, from 1."""
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def line_start(self, line: int) -> int:
        """The offset of a line that counts from 0."""
        return self._lines[line] if line < len(self._lines) else len(self.text)

    def at(self, message: str, *pointer: Pointer, span: tuple[int, int] | None = None, severity: Severity | None = None,
           fix: Fix | None = None, about: str = "", host: str = "") -> Diagnostic:
        """A diagnostic at a place: a path of keys (where the file has such), or a span of characters."""
        start, end = span or self.locate(pointer)
        return Diagnostic(self, message, start, end, self.named(pointer), severity, fix, about, host)

    def locate(self, pointer: tuple[Pointer, ...]) -> tuple[int, int]:
        return 0, 0

    def named(self, pointer: tuple[Pointer, ...]) -> str:
        return "".join(f"/{str(p).replace('~', '~0').replace('/', '~1')}" for p in pointer)

    def swap(self, span: tuple[int, int], text: str) -> Edit:
        return Edit(self, span[0], span[1], text)

    def fix_span(self, span: tuple[int, int], text: str, message: str, kind: FixClass = "safe") -> Fix:
        return Fix(kind, message, (self.swap(span, text),))


def _all(handle: int, size: int) -> bytes:
    """The file as far as it reached when it was opened."""
    parts, left = [], min(size, MAX_BYTES)
    while left > 0 and (part := os.read(handle, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


class JsonFile(File):
    """A JSON file. ``data`` is ``None`` where it does not parse; ``error`` says why."""

    @cached_property
    def _parsed(self) -> tuple[Any, str, int, bool]:
        text, twice = self.text, False
        skip = 1 if self.bom else 0

        def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
            nonlocal twice
            made = dict(items)
            twice = twice or len(made) != len(items)
            return made

        def constant(name: str) -> Any:
            raise ValueError(f"{name} is not JSON")

        if self.problem:
            return None, self.problem, 0, False
        try:
            return json.loads(text[skip:], object_pairs_hook=pairs, parse_constant=constant), "", 0, twice
        except json.JSONDecodeError as error:
            return None, error.msg if text[skip:].strip() else "the file is empty", error.pos + skip, False
        except RecursionError:
            return None, "nested too deeply", 0, False
        except ValueError as error:
            return None, str(error).split(";")[0], 0, False

    @property
    def data(self) -> Any:
        return self._parsed[0]

    @property
    def object(self) -> dict[str, Any]:
        """The top-level object, or an empty one."""
        return self.data if isinstance(self.data, dict) else {}

    @property
    def error(self) -> str:
        return self._parsed[1]

    @property
    def has_duplicates(self) -> bool:
        return self._parsed[3]

    def at_error(self, message: str) -> Diagnostic:
        at = min(self._parsed[2], max(len(self.text) - 1, 0))
        return self.at(message, span=(at, at))

    @cached_property
    def index(self) -> Index:
        ok = self.data is not None and len(self.text) <= MAX_INDEXED
        return Index(self.text) if ok else Index("")

    def node(self, *pointer: Pointer) -> Node | None:
        return self.index.find(pointer)

    def locate(self, pointer: tuple[Pointer, ...]) -> tuple[int, int]:
        for length in range(len(pointer), -1, -1):
            node = self.index.find(pointer[:length])
            if node:
                if length < len(pointer) or not pointer:  # the member is missing: point at its object's first character
                    return node.start, min(node.end, node.start + 1)
                return node.start, node.end
        return 0, 0

    def key_span(self, *pointer: Pointer) -> tuple[int, int]:
        node = self.node(*pointer)
        return node.key if node and node.key else self.locate(pointer)

    # -- repairs: ``None`` where the place is not known (a file above MAX_INDEXED)
    def set_value(self, value: Any, *pointer: Pointer, message: str, kind: FixClass = "safe") -> Fix | None:
        node = self.node(*pointer)
        text = json.dumps(value, ensure_ascii=False)
        return Fix(kind, message, (Edit(self, node.start, node.end, text),)) if node else None

    def rename_key(self, new: str, *pointer: Pointer, message: str, kind: FixClass = "safe") -> Fix | None:
        node = self.node(*pointer)
        return Fix(kind, message, (Edit(self, *node.key, json.dumps(new)),)) if node and node.key else None

    def drop(self, *pointer: Pointer, message: str, kind: FixClass = "safe") -> Fix | None:
        """Remove a member or an element, with the comma that belongs to it."""
        node = self.node(*pointer)
        if not node or not pointer:
            return None
        start, end = self.index.removal(node)
        return Fix(kind, message, (Edit(self, start, end, ""),))

    def add_member(self, key: str, value: Any, *pointer: Pointer, message: str, kind: FixClass = "safe") -> Fix | None:
        """Put a member at the head of an object."""
        node = self.node(*pointer)
        if not node:
            return None
        text = f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" + (", " if node.items else "")
        return Fix(kind, message, (Edit(self, node.start + 1, node.start + 1, text),))

    def raw_of(self, *pointer: Pointer) -> str:
        """The text of a value as it is written."""
        node = self.node(*pointer)
        return self.text[node.start:node.end] if node else ""

    def put(self, text: str, *pointer: Pointer, message: str, kind: FixClass = "safe") -> Fix | None:
        """Replace a value by JSON text."""
        node = self.node(*pointer)
        return Fix(kind, message, (Edit(self, node.start, node.end, text),)) if node else None
