"""A schema is checked before anything is asked (structured-output contract, section 2)."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

from kernel import UsageError
from kernel_structured_output import patterns

FLAG = "--json-schema"
MAX_BYTES = 256 * 1024
MAX_DEPTH = 64
MAX_SUBSCHEMAS = 5_000
_DRAFTS = ("http://json-schema.org/draft-07/schema", "http://json-schema.org/draft-06/schema",
           "http://json-schema.org/draft-04/schema", "http://json-schema.org/schema")
_PLACES = ("properties", "patternProperties", "definitions", "$defs", "dependencies")
_LISTS = ("allOf", "anyOf", "oneOf")
_HERE = ("not", "if", "then", "else")
_SINGLE = ("items", "additionalItems", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else")


class Schema(Struct, frozen=True):
    """A schema that compiles. ``wrapped``: its root is no object, so it travels as ``{"value": ...}``.

    ``checked`` is what values are checked against: the same with patterns as Python writes them, and without ``$id``, so that
    every reference leads to the place in the document that was looked at here. ``patterns``: those of Python -> as they were.
    """

    original: dict[str, Any]
    wrapped: bool
    checked: dict[str, Any]
    patterns: dict[str, str]

    def for_model(self) -> dict[str, Any]:
        """The tool's input schema: an object at the root, without combinators there (the API refuses them)."""
        if self.wrapped:
            inner = dict(self.original)
            shared: dict[str, Any] = {key: inner.pop(key) for key in ("definitions", "$defs", "$schema") if key in inner}
            whole: dict[str, Any] = {"type": "object", "properties": {"value": inner}, "required": ["value"]}
            return {**whole, "additionalProperties": False, **shared}
        flat = {key: value for key, value in self.original.items() if key not in _LISTS}
        for key in _LISTS:
            for branch in self.original.get(key, ()):
                if isinstance(branch, dict) and isinstance(branch.get("properties"), dict):
                    flat["properties"] = {**branch["properties"], **flat.get("properties", {})}
        return {"type": "object", **flat}


def of(given: Any) -> Schema:
    """The schema of an option: an object, or a text that holds one.

    :raises UsageError: it is none.
    """
    return check(given) if isinstance(given, dict) else read(str(given))


def read(text: str) -> Schema:
    """The schema of a text.

    :raises UsageError: it is none; one line, in the contract's words.
    """
    try:
        value = json.loads(text) if len(text.encode("utf-8", "replace")) <= MAX_BYTES else _too_large()
    except (ValueError, RecursionError):
        raise UsageError(f"{FLAG} is not valid JSON") from None
    return check(value)


def check(value: Any) -> Schema:
    """The same for a schema that is an object already."""
    if not isinstance(value, dict):
        raise UsageError(f"{FLAG} must be a JSON object")
    draft = value.get("$schema")
    if draft is not None and str(draft).rstrip("#").replace("https:", "http:") not in _DRAFTS:
        raise _invalid(f"$schema: {str(draft)[:200]} is not supported; use draft-07")
    copy = _copied(value)
    _compiles(copy)
    translated = _walk(copy)
    try:
        if _expanded(copy, copy, {}, set()) > MAX_SUBSCHEMAS:
            _too_large()
    except RecursionError:
        _too_large()
    return Schema(value, not _is_object(value), copy, translated)


def _copied(value: dict[str, Any]) -> dict[str, Any]:
    try:
        text = json.dumps(value)
        copy: dict[str, Any] = json.loads(text) if len(text) <= 6 * MAX_BYTES else _too_large()
    except RecursionError:
        _too_large()
    except (TypeError, ValueError) as error:
        raise _invalid(f"root: {error}") from None
    return copy


def _compiles(value: dict[str, Any]) -> None:
    from jsonschema import Draft7Validator, FormatChecker
    from jsonschema.exceptions import SchemaError

    try:
        Draft7Validator.check_schema(value, format_checker=FormatChecker(()))  # patterns are looked at below, as ECMA's
    except SchemaError as error:
        place = "/".join(map(str, error.absolute_path))
        raise _invalid(f"{place or 'root'}: {' '.join(error.message[:300].split())}") from None
    except RecursionError:
        _too_large()


def _is_object(schema: dict[str, Any]) -> bool:
    kind = schema.get("type")
    if kind is not None:
        return bool(kind == "object")
    return "properties" in schema or "required" in schema or any(
        isinstance(branch, dict) and _is_object(branch) for key in _LISTS for branch in schema.get(key, ())) or not schema


def _invalid(detail: str) -> UsageError:
    return UsageError(f"{FLAG} is not a valid JSON Schema: {detail}")


def _too_large() -> Any:
    raise _invalid("schema too large")


def _walk(root: dict[str, Any]) -> dict[str, str]:
    """Depth, references and patterns of every subschema that a value can meet; the copy is made fit for checking.

    Nothing outside of the document is ever looked at. What a reference leads to is a subschema wherever it stands.
    """
    stack: list[tuple[Any, int, str]] = [(root, 1, "")]
    seen: set[int] = set()
    translated: dict[str, str] = {}
    while stack:
        schema, depth, where = stack.pop()
        if not isinstance(schema, dict) or id(schema) in seen:
            continue
        seen.add(id(schema))
        if depth > MAX_DEPTH or len(seen) > MAX_SUBSCHEMAS:
            _too_large()
        schema.pop("$id", None)
        if not isinstance(schema.get("items"), list):
            schema.pop("additionalItems", None)  # says nothing there, and jsonschema stumbles over it beside a Boolean
        reference = schema.get("$ref")
        if isinstance(reference, str):
            target = referred(root, reference)
            if target is None:
                raise _invalid(f"{where or 'root'}: $ref {reference[:200]!r} does not lead to a place in the document")
            if id(target) not in seen:
                _compiles(target if isinstance(target, dict) else {})
                stack.append((target, 1, reference))
        for key, inner in _children(schema):
            stack.append((inner, depth + 1, f"{where}/{key}"))
        _translate(schema, where, translated)
    return translated


def _translate(schema: dict[str, Any], where: str, translated: dict[str, str]) -> None:
    def python(pattern: str) -> str:
        try:
            made = patterns.python(pattern)
        except ValueError as error:
            raise _invalid(f"{where or 'root'}: pattern {pattern[:100]!r} cannot be used here ({error})") from None
        translated[made] = pattern
        return made

    if isinstance(schema.get("pattern"), str):
        schema["pattern"] = python(schema["pattern"])
    if isinstance(schema.get("patternProperties"), dict):
        schema["patternProperties"] = {python(key): inner for key, inner in schema["patternProperties"].items()}


def _children(schema: dict[str, Any]) -> list[tuple[str, Any]]:
    """The subschemas of one, with the place where each stands."""
    found = [(f"{key}/{name}", inner) for key in _PLACES if isinstance(schema.get(key), dict)
             for name, inner in schema[key].items()]
    for key in (*_LISTS, *_SINGLE):
        inner = schema.get(key)
        found += [(key, item) for item in (inner if isinstance(inner, list) else [inner])]
    return [(where, inner) for where, inner in found if isinstance(inner, dict)]


def _expanded(schema: Any, root: dict[str, Any], known: dict[int, int], here: set[int]) -> int:
    """How many subschemas there are when every reference is written out; a recursive one counts once.

    :param here: those that look at the very same value; one that leads back to itself would never end.
    """
    if not isinstance(schema, dict):
        return 1
    if id(schema) in here:
        raise _invalid("a $ref leads back to itself without going into the value")
    if id(schema) in known:
        return known[id(schema)]
    known[id(schema)] = 1
    inside = here | {id(schema)}
    count = 1
    for where, inner in _children(schema):
        key = where.partition("/")[0]
        count += _expanded(inner, root, known, inside if key in (*_LISTS, *_HERE, "dependencies") else set())
    if isinstance(schema.get("$ref"), str):
        count += _expanded(referred(root, schema["$ref"]), root, known, inside)
    known[id(schema)] = min(count, MAX_SUBSCHEMAS + 1)
    return known[id(schema)]


def referred(root: dict[str, Any], reference: str) -> Any:
    """The subschema that a JSON pointer of this document leads to; ``None``: nowhere."""
    from urllib.parse import unquote

    if reference != "#" and not reference.startswith("#/"):
        return None
    place, _ = at(root, unquote(reference[1:]))
    return place if isinstance(place, dict | bool) else None


def at(value: Any, pointer: str) -> tuple[Any, bool]:
    """What a JSON pointer leads to in a value, and whether there is anything."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and key.isdecimal() and len(key) < 6 and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict) and key in value:
            value = value[key]
        else:
            return None, False
    return value, True
