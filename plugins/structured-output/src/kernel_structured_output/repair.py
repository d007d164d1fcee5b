"""What a value that does not fit is answered with: one object per problem, at most five (section 5)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kernel import OutputProblem

MAX_PROBLEMS = 5
RECEIVED_CHARS = 500


def problems_of(schema: dict[str, Any], value: Any) -> list[OutputProblem]:
    """What does not fit the schema, the most telling first."""
    from jsonschema import Draft7Validator
    from jsonschema.exceptions import best_match

    found = list(Draft7Validator(schema).iter_errors(value))
    if not found:
        return []
    best = best_match(found)
    deepest = sorted(found, key=lambda error: -len(error.absolute_path))
    ordered = [best, *(error for error in deepest if error is not best and error not in best.context)]
    return [_problem(error) for error in ordered[:MAX_PROBLEMS]]


def _problem(error: Any) -> OutputProblem:
    wanted = error.validator_value
    expected = wanted if isinstance(wanted, str) else json.dumps(wanted, ensure_ascii=False, default=str)
    return OutputProblem(validator="json_schema", path=pointer(error.absolute_path), rule=str(error.validator),
                         expected=expected[:RECEIVED_CHARS], received=shown(error.instance))


def pointer(path: Iterable[Any]) -> str:
    """A JSON pointer."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= RECEIVED_CHARS else text[:RECEIVED_CHARS - 1] + "…"


def words(problems: list[OutputProblem], attempt: int, limit: int, *, again: bool, example: Any = None) -> str:
    """The text of the error result.

    :param again: the very same value was refused before.
    """
    import msgspec

    lines = [msgspec.json.encode({**msgspec.to_builtins(p), "retry_scope": p.retry_scope, "attempt": attempt,
                                  "max_attempts": limit}).decode() for p in problems[:MAX_PROBLEMS]]
    scopes = {p.retry_scope for p in problems}
    if "planner" in scopes:
        lines.append("The same is missing for the third time. Plan anew, or give the answer without that item and mark it as "
                     "unknown.")
    elif "tool_loop" in scopes:
        lines.append("Use the tools to get what is missing, then call StructuredOutput again.")
    else:
        lines.append("Correct the value and call StructuredOutput again. Nothing else needs to be done over.")
    if again:
        lines.append("This is the same value that was refused before."
                     + ("" if example is None else f" A smallest value that fits: {shown(example)}"))
    return "\n".join(lines)


def example(schema: Any, root: dict[str, Any], depth: int = 0) -> Any:
    """A small value of a schema's shape; a help for the model, not a proof."""
    if not isinstance(schema, dict) or depth > 8:
        return None
    if isinstance(schema.get("$ref"), str):
        place: Any = root
        for part in schema["$ref"].split("/")[1:]:
            place = place.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(place, dict) else {}
        return example(place, root, depth + 1)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return example({**schema[key][0], **{k: v for k, v in schema.items() if k != key}}, root, depth + 1)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "array":
        return [example(schema.get("items", {}), root, depth + 1)] * int(schema.get("minItems", 0))
    if kind in ("integer", "number"):
        return schema.get("minimum", 0)
    if kind == "string":
        return "x" * int(schema.get("minLength", 1))
    if kind in ("boolean", "null"):
        return False if kind == "boolean" else None
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    return {name: example(properties.get(name, {}), root, depth + 1) for name in schema.get("required", ())}
