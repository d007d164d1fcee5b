"""The script file: its form, and reading it. See the README for the format in words.

A script that does not fit the form is refused as a whole, with file, line, field and what was expected.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from kernel import Block, StreamEvent, UsageError

Seconds = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]
Times = Annotated[int, Meta(ge=1)]

TEMPLATE = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
TEMPLATES = ("last_result", "last_prompt")
MAX_BYTES = 64 * 1024 * 1024
_PLACE = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


class When(Struct, forbid_unknown_fields=True):
    """Which requests a turn answers: all that is given must hold. Compared as plain text, case included."""

    contains: str | None = None
    """Stands in what the person said last."""
    first_contains: str | None = None
    """Stands in what the conversation began with; tells subagents apart."""


class Call(Struct, forbid_unknown_fields=True):
    """One tool call. ``raw_input`` is sent instead of ``input``, as it is, for input that is no JSON."""

    tool: str
    input: dict[str, Any] = field(default_factory=dict)
    raw_input: str | None = None
    id: str | None = None


class Fail(Struct, forbid_unknown_fields=True):
    """A failed request, ``times`` in a row; behind events or text, a stream that breaks."""

    kind: str = ""
    status: int | None = None
    message: str = "scripted failure"
    retry_after: Seconds | None = None
    should_retry: bool | None = None
    times: Times = 1


class Turn(Struct, forbid_unknown_fields=True):
    """One answer: thinking, text, calls in this order; or ``blocks``; or ``events`` as they are; or a failure."""

    when: When | None = None
    repeat: bool = False
    thinking: str | None = None
    signature: str = "scripted"
    text: str | None = None
    calls: list[Call] = field(default_factory=list)
    blocks: list[Block] | None = None
    events: str | list[StreamEvent] | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: dict[str, Count] = field(default_factory=dict)
    delay: Seconds = 0
    pace: Seconds | None = None
    cut_after: Count | None = None
    fail: Fail | None = None

    @property
    def answers(self) -> bool:
        """Whether something is streamed; otherwise the turn is a failure alone."""
        return bool(self.text is not None or self.thinking is not None or self.calls
                    or self.blocks is not None or self.events is not None)


class Facts(Struct, forbid_unknown_fields=True):
    """What the script says of its model."""

    context_window: Times = 200_000
    max_output: Times = 32_000
    effort: bool = False


class Script(Struct, forbid_unknown_fields=True):
    """A whole script. ``pace``: seconds between two pieces of text."""

    turns: Annotated[list[Turn], Meta(min_length=1)]
    name: str = ""
    description: str = ""
    model: Facts = field(default_factory=Facts)
    pace: Seconds = 0


def load(path: Path) -> Script:
    """Read and check a script.

    :raises UsageError: it cannot be read or does not fit the form.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"is larger than {MAX_BYTES} bytes", context=f"script {path}")
        text = path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", context=f"script {path}",
                         hint="KERNEL_SCRIPT, the setting kernel.script or --model script:PATH names it") from None
    data, node = _parse(path, text)
    try:
        script = msgspec.convert(data, Script)
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at `")
        of_name = "the name must be a string: " if place.startswith("key`") else ""
        raise _refusal(path, node, place.partition("$")[2].rstrip("`"), of_name + said) from None
    for number, turn in enumerate(script.turns):
        fault = _fault(turn)
        if fault:
            raise _refusal(path, node, f".turns[{number}]{fault[0]}", fault[1])
        if isinstance(turn.events, str):
            turn.events = _events(path, node, number, turn.events)
    script.name = script.name or path.stem
    return script


def _parse(path: Path, text: str) -> tuple[Any, Any]:
    """The data and the tree of nodes that knows the lines."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        again = _alias(node)
        if again is not None:
            raise UsageError("expected no aliases (*name)", context=f"script {path}, line {again}")
        return (loader.construct_document(node) if node is not None else None), node
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error) or type(error).__name__
        line = f", line {mark.line + 1}" if mark else ""
        raise UsageError(f"is no valid YAML: {what}", context=f"script {path}{line}") from None
    finally:
        loader.dispose()


def _alias(node: Any) -> int | None:
    """The line of a list or mapping that stands in the tree twice: such a tree may have no end."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        item = waiting.pop()
        if not isinstance(getattr(item, "value", None), list):
            continue
        if id(item) in seen:
            return int(item.start_mark.line) + 1
        seen.add(id(item))
        for child in item.value:
            waiting += child if isinstance(child, tuple) else [child]
    return None


def _refusal(path: Path, node: Any, place: str, expected: str) -> UsageError:
    """``place`` is a path such as ``.turns[2].calls[0].tool``."""
    line = _line(node, place)
    turn = re.match(r"\.turns\[(\d+)\]", place)
    where = [f"script {path}", *([f"line {line}"] if line else []), *([f"turn {int(turn[1]) + 1}"] if turn else []),
             *([place.lstrip(".")] if place else [])]
    return UsageError(expected, context=", ".join(where), hint="the README of model-script shows every field")


def _line(node: Any, place: str) -> int | None:
    """The line of the deepest part of the path that is there."""
    if node is None:
        return None
    for name, number in _PLACE.findall(place):
        children = node.value if isinstance(node.value, list) else []
        if number:
            found = children[int(number)] if int(number) < len(children) else None
        else:
            found = next((v for k, v in (c for c in children if isinstance(c, tuple)) if k.value == name), None)
        if found is None or isinstance(found, tuple):
            break
        node = found
    return int(node.start_mark.line) + 1


def _fault(turn: Turn) -> tuple[str, str] | None:
    """What is wrong with a turn that has the right form, as (field, expectation)."""
    if not turn.answers and turn.fail is None:
        return "", "expected one of thinking, text, calls, blocks, events or fail"
    given = [name for name in ("thinking", "text", "calls", "blocks", "events") if getattr(turn, name) not in (None, [])]
    for name in ("blocks", "events"):
        others = set(given) - {name}
        if getattr(turn, name) is not None and others:
            return f".{name}", f"expected no {min(others)} beside it"
    for place, value in ((".text", turn.text), (".thinking", turn.thinking), (".blocks", turn.blocks),
                         *((f".calls[{n}].input", call.input) for n, call in enumerate(turn.calls))):
        fault = _template_fault(value, place) or _json_fault(value, place)
        if fault:
            return fault
    if isinstance(turn.events, list) and (fault := _json_fault(turn.events, ".events")):
        return fault
    for n, block in enumerate(turn.blocks or ()):
        if not isinstance(block.get("type"), str):
            return f".blocks[{n}]", "expected a content block with a 'type'"
    for n, event in enumerate(turn.events if isinstance(turn.events, list) else ()):
        if not isinstance(event.get("type"), str):
            return f".events[{n}]", "expected an event with a 'type'"
    return None


def _template_fault(value: Any, place: str) -> tuple[str, str] | None:
    """The first unknown template."""
    if isinstance(value, str):
        unknown = next((name for name in TEMPLATE.findall(value) if name not in TEMPLATES), None)
        known = ", ".join(f"{{{{{name}}}}}" for name in TEMPLATES)
        return None if unknown is None else (place, f"expected one of {known}, found {{{{{unknown}}}}}")
    return next((fault for inner, at in _inside(value, place) if (fault := _template_fault(inner, at))), None)


def _json_fault(value: Any, place: str) -> tuple[str, str] | None:
    """The first value that JSON does not have: YAML reads dates and names of other types."""
    if isinstance(value, dict) and (bad := next((k for k in value if not isinstance(k, str)), None)) is not None:
        return place, f"expected names that are strings, found {bad!r}; put it in quotes"
    if value is None or isinstance(value, str | bool | int | float):
        return None
    if not isinstance(value, dict | list):
        return place, f"expected a JSON value, found a {type(value).__name__}; put it in quotes"
    return next((fault for inner, at in _inside(value, place) if (fault := _json_fault(inner, at))), None)


def _inside(value: Any, place: str) -> list[tuple[Any, str]]:
    if isinstance(value, dict):
        return [(inner, f"{place}.{name}") for name, inner in value.items()]
    return [(inner, f"{place}[{n}]") for n, inner in enumerate(value)] if isinstance(value, list) else []


def _events(path: Path, node: Any, number: int, text: str) -> list[StreamEvent]:
    """Recorded events: one JSON object in a line."""
    events = []
    for n, line in enumerate(text.splitlines()):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict) or not isinstance(event.get("type"), str):
            raise _refusal(path, node, f".turns[{number}].events", f"expected a JSON object with a 'type' in its line {n + 1}")
        events.append(event)
    return events
