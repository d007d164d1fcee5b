"""Check a value against a tool's JSON Schema, with the leniencies of the contract (tools contract, section 3)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from kernel.tools import Tool

_validators: WeakKeyDictionary[Tool, dict[bool, Any]] = WeakKeyDictionary()


def fault(tool: Tool, value: Any, *, output: bool = False) -> tuple[Any, str]:
    """The value after the documented coercions, and what is wrong with it in words (empty: nothing).

    ``null`` for an optional key means "not given"; a Boolean or number sent as a string, and JSON text where an object
    or list is wanted, are taken as meant.
    """
    schema = tool.output_schema if output else tool.input_schema
    if not schema:
        return value, ""
    if not output and isinstance(value, dict):
        value = _coerced(value, schema)
    validator = _validator(tool, output, schema)
    errors = sorted(validator.iter_errors(value), key=lambda error: list(map(str, error.absolute_path)))
    return value, "; ".join(_words(error) for error in errors[:5])


def _validator(tool: Tool, output: bool, schema: dict[str, Any]) -> Any:
    made = _validators.setdefault(tool, {})
    if output not in made:
        from jsonschema.validators import Draft202012Validator

        made[output] = Draft202012Validator(schema)
    return made[output]


def _words(error: Any) -> str:
    """Path, expected, received."""
    path = ".".join(str(p) for p in error.absolute_path)
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        where = f"{path}." if path else ""
        return ", ".join(f"{where}{name}: required, but missing" for name in missing)
    if error.validator == "additionalProperties":
        extra = sorted(set(error.instance) - set(error.schema.get("properties", ())))
        names = ", ".join(f"{path}.{x}" if path else x for x in extra)
        return f"{names}: unknown key; known: {', '.join(error.schema.get('properties', ()))}"
    received = json.dumps(error.instance, ensure_ascii=False, default=str)[:100]
    expected = f"expected {error.validator_value}" if error.validator in ("type", "enum", "const") else error.message[:200]
    return f"{path or 'input'}: {expected}, received {type(error.instance).__name__} {received}"


def _coerced(value: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    required = schema.get("required") or ()
    return {key: _coerce(item, properties.get(key)) for key, item in value.items()
            if not (item is None and key in properties and key not in required)}


def _coerce(item: Any, schema: Any) -> Any:
    wanted = schema.get("type") if isinstance(schema, dict) else None
    if not isinstance(item, str) or wanted == "string" or (isinstance(wanted, list) and "string" in wanted):
        return item
    text = item.strip()
    if wanted == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if wanted in ("integer", "number", "object", "array"):
        try:
            parsed = json.loads(text)
        except ValueError:
            return item
        fits = {"integer": int, "number": int | float, "object": dict, "array": list}[wanted]
        return parsed if isinstance(parsed, fits) and not isinstance(parsed, bool) else item
    return item
