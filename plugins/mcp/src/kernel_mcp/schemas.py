"""Input schemas of servers: what the model is sent, and what we check ourselves (MCP contract, section 6).

A schema comes from a stranger. Nothing it refers to is ever fetched, and the check of arguments follows no reference and
runs no pattern, so that a schema cannot make us wait.
"""

from __future__ import annotations

import json
from typing import Any

_COMBINATORS = ("allOf", "anyOf", "oneOf")
MAX_DEPTH = 120
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})


def for_model(schema: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The schema that is sent to the model, and a sentence for the description.

    Unchanged, but for combinators at the root, which the model API refuses: ``allOf`` is merged; of ``anyOf`` and
    ``oneOf`` the properties are merged and each branch's required keys are told in words.

    :raises ValueError: no object schema comes out.
    """
    found = [key for key in _COMBINATORS if key in schema]
    if not found:
        return ({**schema, "type": "object"} if schema.get("type") != "object" else schema), ""
    flat: dict[str, Any] = {k: v for k, v in schema.items() if k not in _COMBINATORS}
    flat["type"] = "object"
    properties = dict(_mapping(schema.get("properties"), "properties"))
    required = list(_strings(schema.get("required")))
    told: list[str] = []
    for key in found:
        branches = schema[key]
        if not isinstance(branches, list) or not branches:
            raise ValueError(f"{key} is no list of schemas")
        for branch in (_resolved(b, schema) for b in branches):
            for name, value in _mapping(branch.get("properties"), f"{key}.properties").items():
                properties.setdefault(name, value)
            if key == "allOf":
                required += [n for n in _strings(branch.get("required")) if n not in required]
        if key != "allOf":
            sets = [", ".join(_strings(_resolved(b, schema).get("required"))) or "nothing" for b in branches]
            told.append(f"{'Exactly one' if key == 'oneOf' else 'At least one'} of these sets of arguments is required: "
                        + "; or ".join(sets) + ".")
    flat["properties"] = properties
    if required:
        flat["required"] = required
    return flat, " ".join(told)


def _resolved(branch: Any, root: dict[str, Any]) -> dict[str, Any]:
    """A branch, looked up where it is a local reference one step deep."""
    reference = branch.get("$ref") if isinstance(branch, dict) else None
    if isinstance(reference, str) and reference.startswith("#/"):
        value: Any = root
        for part in reference[2:].split("/"):
            value = value.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(value, dict) else None
        branch = value
    if not isinstance(branch, dict):
        raise ValueError("a branch at the root is no schema object")
    if any(key in branch for key in _COMBINATORS):
        raise ValueError("combinators at the root stand inside each other")
    return branch


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{where} is no object")
    return value


def _strings(value: Any) -> list[str]:
    return [v for v in value if isinstance(v, str)] if isinstance(value, list) else []


def for_check(schema: dict[str, Any]) -> dict[str, Any]:
    """What we check before a call leaves: the types of the first level, and the required keys. Servers check the rest.

    A property that may be null or has no simple type is left out: what it is given goes through as it stands.
    """
    properties = schema.get("properties")
    simple: dict[str, Any] = {}
    for name, value in properties.items() if isinstance(properties, dict) else ():
        wanted = value.get("type") if isinstance(value, dict) else None
        kinds = wanted if isinstance(wanted, list) else [wanted]
        if kinds and all(isinstance(k, str) and k in _TYPES for k in kinds) and "null" not in kinds:
            simple[name] = {"type": wanted}
    return {"type": "object", "properties": simple, "required": _strings(schema.get("required"))}


def mismatch(schema: Any, value: Any) -> str:
    """How a structured result differs from its declared schema, in words; empty where it fits or cannot be checked."""
    if not isinstance(schema, dict):
        return ""
    from jsonschema.exceptions import best_match
    from jsonschema.validators import Draft202012Validator
    from referencing import Registry

    try:
        error = best_match(Draft202012Validator(schema, registry=Registry()).iter_errors(value))
    except Exception:  # a schema that cannot be used, or refers to somewhere else: nothing is checked
        return ""
    return "" if error is None else f"{'.'.join(map(str, error.absolute_path)) or 'the result'}: {error.message}"[:300]


def clean_text(text: str) -> str:
    """Text of a server without lone surrogates, which no encoder takes."""
    return text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text


def cut(text: str, limit: int = 2048) -> str:
    """At most ``limit`` bytes of UTF-8, marked where something is missing."""
    raw = clean_text(text).encode()
    if len(raw) <= limit:
        return raw.decode()
    return raw[:limit - 16].decode("utf-8", "ignore") + "... (cut)"


def encodable(value: Any) -> bool:
    """Whether a schema can be sent: JSON, and not nested beyond what readers take."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level if isinstance(outer, dict | list)
                 for inner in (outer.values() if isinstance(outer, dict) else outer)]
        if not level:
            break
    else:
        return False
    try:
        json.dumps(value).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return True
