"""Frontmatter: YAML 1.2 core values with the lines of the keys (skills contract, section 3).

A safe loader without the 1.1 resolvers for booleans, dates, sexagesimal numbers and merge keys; unknown tags become plain
values; the last of two equal keys counts. No object of any other type can come out of it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from msgspec import Struct, field

MAX_CHARACTERS = 200_000
_OPEN = re.compile(r"\ufeff?---[ \t]*\r?\n")
_CLOSE = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)
_KEY = re.compile(r"^([A-Za-z_][\w.-]*):[ \t]+(\S.*?)[ \t]*\r?$")


class Key(Struct):
    """A top-level key: spans of the key and of the value, in characters of the file, and the style of the value."""

    key: tuple[int, int]
    value: tuple[int, int]
    style: str = ""


class Front(Struct):
    """``state`` is ``ok``, ``missing``, ``misplaced``, ``unclosed``, ``broken``, ``not-mapping`` or ``empty``."""

    state: str
    data: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, Key] = field(default_factory=dict)
    start: int = 0
    end: int = 0
    body: int = 0
    error: str = ""
    error_at: int = 0
    lead: int = 0
    """Characters in front of a misplaced block."""


@cache
def _loader() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Core(base):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, Any] = {}

        def any_tag(self, suffix: str, node: Any) -> Any:
            if isinstance(node, yaml.ScalarNode):
                return self.construct_scalar(node)
            return self.construct_sequence(node, True) if isinstance(node, yaml.SequenceNode) else self.mapping(node)

        def mapping(self, node: Any) -> dict[str, Any]:
            out: dict[str, Any] = {}
            for key_node, value_node in node.value:
                key = self.construct_object(key_node, deep=True)
                out[key if isinstance(key, str) else str(key)] = self.construct_object(value_node, deep=True)
            return out

    def implicit(tag: str, pattern: str, first: list[str | None]) -> None:
        Core.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern, re.VERBOSE), first)

    implicit("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF"))
    implicit("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""])
    implicit("int", r"^[-+]?[0-9]{1,300}$", list("-+0123456789"))
    implicit("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", list("-+.0123456789"))
    Core.add_constructor("tag:yaml.org,2002:map", Core.mapping)
    Core.add_constructor("tag:yaml.org,2002:int", lambda self, node: int(self.construct_scalar(node)))
    Core.add_constructor("tag:yaml.org,2002:float", lambda self, node: float(self.construct_scalar(node)))
    Core.add_multi_constructor("", Core.any_tag)
    return Core


def load(text: str) -> tuple[Any, Any]:
    """Value and root node of a YAML text. Raises ``ValueError`` with ``(message, line, column)`` for what does not parse."""
    import yaml

    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"the block is longer than {MAX_CHARACTERS:,} characters", 0, 0)
    loader = _loader()(text)
    try:
        node = loader.get_single_node()
        return (None if node is None else loader.construct_document(node)), node
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = error.problem or error.context or "does not parse"
        raise ValueError(message, mark.line if mark else 0, mark.column if mark else 0) from None
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, OverflowError) as error:
        message = "nested too deeply" if isinstance(error, RecursionError) else str(error).splitlines()[0]
        raise ValueError(message, 0, 0) from None
    finally:
        loader.dispose()


def parse(text: str) -> Front:
    """The frontmatter of a Markdown text; offsets are those of the text."""
    opening = _OPEN.match(text)
    if not opening:
        return _misplaced(text)
    close = _CLOSE.search(text, opening.end())
    if not close:
        return Front("unclosed", error="the block has no closing line '---'")
    front = Front("ok", start=opening.end(), end=close.start(), body=min(close.end() + 1, len(text)))
    block = text[front.start:front.end]
    try:
        data, node = load(block)
    except ValueError as error:
        message, line, column = error.args
        front.state, front.error = "broken", str(message)
        starts = _starts(block)
        front.error_at = min(front.start + starts[min(line, len(starts) - 1)] + column, max(front.end - 1, front.start))
        return front
    if data is None:
        front.state, front.error = "empty", "the block is empty"
    elif not isinstance(data, dict):
        front.state, front.error = "not-mapping", f"the block is a {'list' if isinstance(data, list) else 'single value'}"
    else:
        front.data, front.keys = data, _keys(node, block, front.start)
    return front


def _misplaced(text: str) -> Front:
    """A block that stands behind something else is not read; without one there is none."""
    head = text[:2000]
    found = re.search(r"(?:\A|\n)(---[ \t]*\r?\n)(?=[A-Za-z_-]+:)", head)
    close = _CLOSE.search(text, found.end()) if found else None
    before = head[:found.start(1)] if found else ""
    if found and close and (not before.strip("\ufeff \t\r\n") or re.fullmatch(r"\s*<!--.*?-->\s*", before, re.DOTALL)):
        return Front("misplaced", error="something stands before the opening line '---'", lead=found.start(1))
    odd = re.match(r"\ufeff?(-{2}|-{4,}|–{1,3}|—)[ \t]*\r?\n(?=[A-Za-z_-]+:)", text)
    if odd and re.search(r"^(?:-{2,}|—)\s*$", text[odd.end():odd.end() + 4000], re.MULTILINE):
        return Front("misplaced", error=f"the opening line is {odd[1]!r} and not '---'")
    return Front("missing")


def _starts(text: str) -> list[int]:
    return [0, *(m.end() for m in re.finditer("\n", text))]


def _keys(node: Any, block: str, base: int) -> dict[str, Key]:
    starts = _starts(block)

    def offset(mark: Any) -> int:
        return base + min(starts[min(int(mark.line), len(starts) - 1)] + int(mark.column), len(block))

    return {key.value: Key((offset(key.start_mark), offset(key.end_mark)), (offset(value.start_mark), offset(value.end_mark)),
                           value.style or "" if value.id == "scalar" else value.id)
            for key, value in node.value if key.id == "scalar"}


def quotable(block: str) -> list[tuple[int, int, str]]:
    """Spans of plain top-level values that do not parse alone, with the quoted text: the repair of the contract, 3.2."""
    out = []
    for match in re.finditer(r"[^\n]*\n?", block):
        line = _KEY.match(match[0].rstrip("\n"))
        if not line or line[2][0] in "\"'|>":
            continue
        value, start = line[2], match.start() + line.start(2)
        try:
            alone, _ = load(f"k: {value}\n")
            good = isinstance(alone, dict) and len(alone) == 1 and not isinstance(alone["k"], dict)
        except ValueError:
            good = False
        if not good:
            out.append((start, start + len(value), quote(value)))
    return out


def quote(value: str) -> str:
    """A YAML text in double quotes."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    return f'"{escaped}"'


def repaired(block: str) -> str | None:
    """The block with broken values quoted, where that makes it a mapping."""
    edits = quotable(block)
    if not edits:
        return None
    pieces, at = [], 0
    for start, end, text in edits:
        pieces += [block[at:start], text]
        at = end
    block = "".join([*pieces, block[at:]])
    try:
        data, _ = load(block)
    except ValueError:
        return None
    return block if isinstance(data, dict) else None
