"""What a value that does not fit is answered with: one object per problem, at most five (section 5)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kernel import OutputProblem
from kernel_structured_output.patterns import may_take_long
from kernel_structured_output.schema import Schema, referred

MAX_PROBLEMS = 5
RECEIVED_CHARS = 500
MAX_NESTED = 8
MOST_PARTS = 100
"""Of an example: more is no help."""


async def check(schema: Schema, value: Any) -> list[OutputProblem]:
    """``problems_of``, in a process of its own where a pattern may take long."""
    if _may_take_long(schema, value):
        from kernel_structured_output import apart

        return await apart.check(schema, value)
    return problems_of(schema, value)


def _may_take_long(schema: Schema, value: Any) -> bool:
    size = len(repr(value)) if schema.patterns else 0
    return any(may_take_long(pattern, size) for pattern in schema.patterns)


def problems_of(schema: Schema, value: Any) -> list[OutputProblem]:
    """What does not fit the schema, the most telling first."""
    from jsonschema import Draft7Validator
    from jsonschema.exceptions import best_match
    from referencing import Registry

    try:
        found = list(Draft7Validator(schema.checked, registry=Registry()).iter_errors(value))
    except RecursionError:
        return [OutputProblem(validator="json_schema", path="", rule="depth", expected="a value that is less deeply nested")]
    if not found:
        return []
    best = best_match(found)
    deepest = sorted(found, key=lambda error: -len(error.absolute_path))
    ordered = [best, *(error for error in deepest if error is not best and error not in best.context)]
    return [_problem(error, schema.patterns) for error in ordered[:MAX_PROBLEMS]]


def _problem(error: Any, patterns: dict[str, str]) -> OutputProblem:
    wanted = error.validator_value
    if error.validator == "pattern":
        wanted = patterns.get(wanted, wanted)
    expected = wanted if isinstance(wanted, str) else json.dumps(wanted, ensure_ascii=False, default=str)
    return OutputProblem(validator="json_schema", path=pointer(error.absolute_path), rule=str(error.validator),
                         expected=expected[:RECEIVED_CHARS], received=shown(error.instance))


def pointer(path: Iterable[Any]) -> str:
    """A JSON pointer."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def shown(value: Any) -> str:
    text = _clean(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= RECEIVED_CHARS else text[:RECEIVED_CHARS - 1] + "…"


def _clean(text: str) -> str:
    """Without half characters, which no request may hold."""
    return text.encode("utf-8", "replace").decode()


def words(problems: list[OutputProblem], attempt: int, limit: int, *, again: bool, example: Any = None,
          plain: bool = False) -> str:
    """The text of the error result.

    :param again: the very same value was refused before.
    :param plain: the answer is a text, and is given once more as one.
    """
    import msgspec

    told = [{**msgspec.to_builtins(p), "retry_scope": p.retry_scope, "attempt": attempt, "max_attempts": limit}
            for p in problems[:MAX_PROBLEMS]]
    lines = [_clean(json.dumps(one, ensure_ascii=False, separators=(",", ":"))) for one in told]
    scopes = {p.retry_scope for p in problems}
    if "planner" in scopes:
        lines.append("The same is missing for the third time. Plan anew, or give the answer without that item and mark it as "
                     "unknown.")
    elif "tool_loop" in scopes:
        lines.append(f"Use the tools to get what is missing, then {'answer' if plain else 'call StructuredOutput'} again.")
    elif plain:
        lines.append("Correct the answer and give it again. Nothing else needs to be done over.")
    else:
        lines.append("Correct the value and call StructuredOutput again. Nothing else needs to be done over.")
    if again:
        lines.append("This is the same value that was refused before."
                     + ("" if example is None else f" A smallest value that fits: {shown(example)}"))
    return "\n".join(lines)


def example(schema: Schema) -> Any:
    """A small value that fits the schema; ``None`` where none is found easily."""
    made = _made(schema.original, schema.original, 0, [MOST_PARTS])
    return None if _may_take_long(schema, made) or problems_of(schema, made) else made


def _made(schema: Any, root: dict[str, Any], depth: int, room: list[int]) -> Any:
    room[0] -= 1
    if not isinstance(schema, dict) or depth > MAX_NESTED or room[0] < 0:
        return None
    if isinstance(schema.get("$ref"), str):
        return _made(referred(root, schema["$ref"]), root, depth + 1, room)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        branch = next((b for b in schema.get(key) or () if isinstance(b, dict)), None)
        if branch is not None:
            return _made({**branch, **{k: v for k, v in schema.items() if k != key}}, root, depth + 1, room)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "array":
        return [_made(schema.get("items", {}), root, depth + 1, room)] * min(int(schema.get("minItems", 0)), MOST_PARTS)
    if kind in ("integer", "number"):
        return schema.get("minimum", 0)
    if kind == "string":
        return "x" * min(int(schema.get("minLength", 1)), RECEIVED_CHARS)
    if kind in ("boolean", "null"):
        return False if kind == "boolean" else None
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    return {name: _made(properties.get(name, {}), root, depth + 1, room) for name in schema.get("required", ())}
