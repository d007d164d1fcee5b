"""A schema is checked before anything is asked (structured-output contract, section 2)."""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Struct

from kernel import UsageError

FLAG = "--json-schema"
MAX_BYTES = 256 * 1024
MAX_DEPTH = 64
MAX_SUBSCHEMAS = 5_000
_DRAFTS = ("http://json-schema.org/draft-07/schema", "http://json-schema.org/draft-06/schema",
           "http://json-schema.org/draft-04/schema", "http://json-schema.org/schema")
_PLACES = ("properties", "patternProperties", "definitions", "$defs", "dependencies")
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("items", "additionalItems", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else")


class Schema(Struct, frozen=True):
    """A schema that compiles. ``wrapped``: its root is no object, so it travels as ``{"value": ...}``."""

    original: dict[str, Any]
    wrapped: bool

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
    _walk(value)
    from jsonschema import Draft7Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft7Validator.check_schema(value)
    except SchemaError as error:
        place = "/".join(map(str, error.absolute_path))
        raise _invalid(f"{place or 'root'}: {error.message[:300]}") from None
    except RecursionError:
        _too_large()
    return Schema(value, not _is_object(value))


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


def _walk(root: dict[str, Any]) -> None:
    """Depth, size, references and patterns of every subschema. Nothing outside of the document is ever looked at."""
    stack: list[tuple[Any, int, str]] = [(root, 1, "")]
    count = 0
    while stack:
        schema, depth, where = stack.pop()
        if not isinstance(schema, dict):
            continue
        count += 1
        if depth > MAX_DEPTH or count > MAX_SUBSCHEMAS:
            _too_large()
        reference = schema.get("$ref")
        if isinstance(reference, str) and not _resolves(root, reference):
            raise _invalid(f"{where or 'root'}: $ref {reference[:200]!r} does not lead to a place in the document")
        patterns = [schema["pattern"]] if isinstance(schema.get("pattern"), str) else []
        properties = schema.get("patternProperties")
        for pattern in [*patterns, *(properties if isinstance(properties, dict) else ())]:
            try:
                re.compile(pattern)
            except (re.error, RecursionError, OverflowError) as error:
                raise _invalid(f"{where or 'root'}: pattern {pattern[:100]!r} cannot be used here ({error})") from None
        for key in _PLACES:
            named = schema.get(key)
            if isinstance(named, dict):
                stack += [(inner, depth + 1, f"{where}/{key}/{name}") for name, inner in named.items()]
        for key in (*_LISTS, *_SINGLE):
            inner = schema.get(key)
            found = inner if isinstance(inner, list) else [inner]
            stack += [(item, depth + 1, f"{where}/{key}") for item in found]


def _resolves(root: dict[str, Any], reference: str) -> bool:
    if not reference.startswith("#"):
        return False
    place: Any = root
    for part in reference[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~").replace("%25", "%")
        if isinstance(place, list) and key.isdecimal() and int(key) < len(place):
            place = place[int(key)]
        elif isinstance(place, dict) and key in place:
            place = place[key]
        else:
            return False
    return reference[1:] == "" or reference[1:2] == "/"
