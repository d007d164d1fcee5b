"""Files that people write, and where in them a rule stands."""

from __future__ import annotations

import json
from functools import lru_cache
from json.decoder import scanstring  # type: ignore[attr-defined]  # not in the stubs, in the documentation of the module
from pathlib import Path
from typing import Any, NamedTuple

from ..rules import Rule

MAX_BYTES = 8 << 20


class Unusable(ValueError):
    """What was given cannot be used; the text says which part and what was expected."""


class Place(NamedTuple):
    """Where a rule comes from. ``line`` counts from 1; ``None`` where there is no file."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


def read_text(path: Path) -> str:
    """:raises Unusable: there is no such file, or it is too large."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise Unusable(f"{path} is larger than {MAX_BYTES >> 20} MB")
    return data.decode("utf-8-sig", "replace")


def place_of(rule: Rule) -> Place:
    """The file and line of a rule; its flag where it has no file."""
    file, found, key = rule.origin.rpartition(", permissions.")
    if not found:
        return Place(rule.origin or rule.source)
    return find_rule(file, key, rule.text)


def find_rule(file: str, key: str, text: str) -> Place:
    path = Path(file)
    # managed settings are joined from a folder of files; the layer is named after the first
    pieces = sorted((path.parent / "managed-settings.d").glob("*.json")) if path.name == "managed-settings.json" else []
    for candidate in (path, *pieces):
        line = _lines(str(candidate), key).get(text.strip())
        if line is not None:
            return Place(str(candidate), line)
    return Place(file)


@lru_cache(64)
def _lines(file: str, key: str) -> dict[str, int]:
    """Rule text -> line, for one list of one settings file."""
    try:
        text = read_text(Path(file))
        found: dict[str, int] = {}
        for value, at in entries(text, ("permissions", key)):
            if isinstance(value, str):
                found.setdefault(value.strip(), text.count("\n", 0, at) + 1)
        return found
    except (Unusable, ValueError, RecursionError):
        return {}


def entries(text: str, keys: tuple[str, ...]) -> list[tuple[Any, int]]:
    """The items of the list under these keys of a JSON text, each with the position where it begins.

    :raises ValueError: it is no JSON.
    """
    decoder = json.JSONDecoder()
    at = _blank(text, 0)
    for key in keys:
        found = None
        for name, value_at in _members(text, at, decoder):
            if name == key:
                found = value_at  # of several the last one counts, as for every reader
        if found is None:
            return []
        at = found
    if text[at:at + 1] != "[":
        return []
    items: list[tuple[Any, int]] = []
    at = _blank(text, at + 1)
    while text[at] != "]":
        value, end = decoder.raw_decode(text, at)
        items.append((value, at))
        at = _blank(text, end)
        if text[at] == ",":
            at = _blank(text, at + 1)
    return items


def _members(text: str, at: int, decoder: json.JSONDecoder) -> list[tuple[str, int]]:
    """Names of an object with the positions of their values."""
    if text[at:at + 1] != "{":
        return []
    found: list[tuple[str, int]] = []
    at = _blank(text, at + 1)
    while text[at:at + 1] == '"':
        name, end = scanstring(text, at + 1, False)
        value_at = _blank(text, _blank(text, end) + 1)
        found.append((name, value_at))
        at = _blank(text, decoder.raw_decode(text, value_at)[1])
        if text[at:at + 1] == ",":
            at = _blank(text, at + 1)
    return found


def _blank(text: str, at: int) -> int:
    while text[at:at + 1] in (" ", "\t", "\n", "\r"):
        at += 1
    if at >= len(text):
        raise ValueError("the text ends early")
    return at


def shown(text: str, limit: int = 200) -> str:
    """A text of a stranger for a terminal: nothing in it moves the cursor or turns the direction of writing."""
    from unicodedata import category

    cut = text if len(text) <= limit else f"{text[:limit - 1]}…"
    return "".join(c if c == " " or (c.isprintable() and category(c) != "Cf") else
                   c.encode("unicode_escape", "surrogatepass").decode("ascii") for c in cut)
