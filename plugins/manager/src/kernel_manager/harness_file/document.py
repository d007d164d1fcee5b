"""YAML with the line of every value, and without what a configuration file does not need: aliases, tags, duplicate keys."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from kernel_manager.errors import ManagerError

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 60

Lines = dict[str, int]
"""Path of a value, written as ``$.plugins[0].path``, -> its line, counted from 1."""


def refuse(path: Path, line: int | None, message: str, hint: str = "") -> ManagerError:
    return ManagerError("bad-harness", message, context=f"{path}, line {line}" if line else str(path), hint=hint)


def load(path: Path) -> tuple[bytes, Any, Lines]:
    """The file's bytes, its data and the lines. The data is what JSON can say.

    :raises ManagerError: ``bad-harness``, with file, line and what was expected.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ManagerError("no-harness", f"cannot be read: {error.strerror}", context=str(path),
                           hint="kernel harness init writes a starter file") from None
    data, lines = parse(path, raw)
    return raw, data, lines


def parse(path: Path, raw: bytes) -> tuple[Any, Lines]:
    import yaml

    if len(raw) > MAX_BYTES:
        raise refuse(path, None, f"is over {MAX_BYTES} bytes")
    try:
        node = yaml.compose(raw.decode("utf-8-sig"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except UnicodeDecodeError as error:
        raise refuse(path, raw[:error.start].count(b"\n") + 1, "is not UTF-8 text") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise refuse(path, mark.line + 1 if mark else None, f"is not valid YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise refuse(path, None, f"is not valid YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise refuse(path, None, "is nested too deeply") from None
    if node is None:
        raise refuse(path, 1, "is empty", "kernel harness init writes a starter file")
    reader = _Reader(path)
    return reader.value(node, "$", 0), reader.lines


class _Reader:
    def __init__(self, path: Path) -> None:
        import yaml

        self.path, self.lines, self.seen = path, Lines(), set[int]()
        self.scalars = yaml.constructor.SafeConstructor()

    def value(self, node: Any, where: str, depth: int) -> Any:
        line = node.start_mark.line + 1
        self.lines[where] = line
        if depth > MAX_DEPTH:
            raise refuse(self.path, line, f"is nested more than {MAX_DEPTH} deep")
        if node.id != "scalar":
            if id(node) in self.seen:
                raise refuse(self.path, line, "aliases are not taken", "write the value where it is used")
            self.seen.add(id(node))
        if node.id == "mapping":
            return self._mapping(node, where, depth)
        if node.id == "sequence":
            return [self.value(child, f"{where}[{n}]", depth + 1) for n, child in enumerate(node.value)]
        return self._scalar(node, line)

    def _mapping(self, node: Any, where: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, child in node.value:
            line = key.start_mark.line + 1
            name = self._scalar(key, line) if key.id == "scalar" else None
            if not isinstance(name, str):
                raise refuse(self.path, line, "a key must be text", "put it in quotes")
            if name in found:
                raise refuse(self.path, line, f"the key {name!r} stands twice")
            found[name] = self.value(child, f"{where}.{name}", depth + 1)
            self.lines[f"{where}.{name}"] = line
        return found

    def _scalar(self, node: Any, line: int) -> Any:
        import yaml

        try:
            value = self.scalars.construct_object(node)
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            said = getattr(error, "problem", None) or str(error)
            raise refuse(self.path, line, f"the value cannot be read: {said}", "put text in quotes") from None
        if isinstance(value, str):
            if any(0xD800 <= ord(c) < 0xE000 for c in value):
                raise refuse(self.path, line, "the text holds half a character (a lone surrogate)")
            return value
        if isinstance(value, float) and not math.isfinite(value):
            raise refuse(self.path, line, "numbers must be finite")
        if value is None or isinstance(value, bool | int | float):
            return value
        raise refuse(self.path, line, f"a {type(value).__name__} is not taken here", "put it in quotes")
