"""Whether two calls, or two results, are the same (loop contract, 10.2)."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from typing import Any

_VOLATILE = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"  # a time
    r"|\b\d+(?:\.\d+)? ?(?:ms|s|sec|seconds|min)\b"  # a duration
    r"|/tmp/[\w./-]+|/var/folders/[\w./-]+"  # a temporary path
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"  # an id
    r"|\[ev_\d+\]"  # the id of a piece of evidence
    r"|\b0x[0-9a-f]+\b", re.IGNORECASE)
DEEPEST = 60


def of_call(tool: str, input: dict[str, Any], schema: dict[str, Any] | None = None) -> bytes:
    """The same for inputs that mean the same: keys in any order, numbers and strings in any spelling, defaults given or not."""
    properties = schema.get("properties") if schema else None
    full = dict(input)
    for name, inner in (properties if isinstance(properties, dict) else {}).items():
        if isinstance(inner, dict) and "default" in inner:
            full.setdefault(name, inner["default"])
    text = json.dumps(_canonical(full), sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return _digest(f"{tool}\0{text}")


def of_result(content: Any, root: str = "") -> bytes:
    """The same for results that differ in times, durations, temporary paths and ids alone.

    :param root: the workspace; paths in it say something, wherever it lies.
    """
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return _digest(_VOLATILE.sub(lambda m: m[0] if root and m[0].startswith(root) else "*", text))


def _canonical(value: Any, depth: int = 0) -> Any:
    if depth > DEEPEST:
        try:
            return str(value)
        except RecursionError:
            return type(value).__name__
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {unicodedata.normalize("NFC", str(k)): _canonical(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return [_canonical(item, depth + 1) for item in value]
    return value


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
