"""Made-up schemas and values: a schema is refused in one line or checks any value; nothing crashes, nothing is fetched."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from typing import Any

import pytest
from kernel_structured_output.patterns import may_take_long
from kernel_structured_output.repair import example, problems_of, words
from kernel_structured_output.schema import check

from kernel import UsageError

NAMED = ("properties", "definitions", "$defs", "patternProperties", "dependencies")
LISTS = ("allOf", "anyOf", "oneOf")
SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "additionalItems")
KEYS = (*NAMED, *LISTS, *SINGLE, "type", "required", "$ref", "pattern", "enum", "const", "minItems", "minLength", "minimum",
        "uniqueItems", "multipleOf", "exclusiveMinimum", "format", "$id", "default", "foo")
ODD = ("", "a", "#", "#/definitions/a", "#/foo", "http://x.example/y", "^a+$", "(", "(a+)+$", "\ud800", "é", "date", "#/allOf/0")
TYPES = ("object", "array", "string", "integer", "null", ["object", "null"])


def value(draw: random.Random, depth: int = 0) -> Any:
    kinds: list[Callable[[], Any]] = [
        lambda: draw.choice((None, True, False)), lambda: draw.choice((0, -1, 1.5, 10**30, 1e300)), lambda: draw.choice(ODD),
        lambda: [value(draw, depth + 1) for _ in range(draw.randrange(4))], lambda: schema(draw, depth + 1)]
    return draw.choice(kinds[: 3 if depth > 3 else 5])()


def schema(draw: random.Random, depth: int = 0) -> Any:
    if depth > 4:
        return draw.choice((True, {}, {"type": "string"}))
    return {key: _fitting(draw, key, depth + 1) if draw.random() < 0.93 else value(draw, depth + 1)
            for key in draw.sample(KEYS, draw.randrange(1, 6))}


def _fitting(draw: random.Random, key: str, depth: int) -> Any:
    if key in NAMED:
        return {draw.choice(("a", "b", "^x", "$id", "a/b")): schema(draw, depth) for _ in range(draw.randrange(3))}
    if key in LISTS:
        return [schema(draw, depth) for _ in range(draw.randrange(1, 3))]
    if key in SINGLE:
        return draw.choice((True, False, schema(draw, depth)))
    if key in ("minItems", "minLength"):
        return draw.choice((0, 1, 10**9))
    if key == "type":
        return draw.choice(TYPES)
    if key == "required":
        return ["a", "b"]
    return draw.choice(ODD[2:5]) if key == "$ref" else value(draw, depth)


def test_a_made_up_schema_is_refused_in_one_line_or_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda *args, **more: pytest.fail("something was fetched"))
    seed = random.randrange(1 << 30)
    used, refused = 0, []
    for number in range(1_500):
        draw = random.Random(f"{seed}-{number}")
        given = schema(draw)
        try:
            made = check(given)
        except UsageError as error:
            refused.append(str(error))
            continue
        used += 1
        made.for_model()
        for found in (value(draw), value(draw)):
            if not any(may_take_long(pattern, len(repr(found))) for pattern in made.patterns):
                told = words(problems_of(made, found), 1, 5, again=True, example=example(made))
                assert told.encode(), f"seed {seed}, schema {number}"
    assert used > 100 and not any("\n" in line for line in refused), f"seed {seed}"
