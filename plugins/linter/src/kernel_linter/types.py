"""The type words of ``tables.py``: what fits them, and their JSON Schema."""

from __future__ import annotations

from typing import Any

from kernel_linter import tables as t

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_PATH: Schema = {"type": "string"}

SCHEMAS: dict[str, Schema] = {
    "any": {}, "string": _TEXT, "boolean": {"type": "boolean"}, "number": {"type": "number"}, "object": {"type": "object"},
    "strings": _TEXTS, "stringMap": {"type": "object", "additionalProperties": _TEXT},
    "url": {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9+.-]*:.+"},
    "author": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}, "email": _TEXT,
                                                                      "url": _TEXT}},
    "paths": {"anyOf": [_PATH, _TEXTS]},
    "commands": {"anyOf": [_PATH, _TEXTS, {"type": "object", "additionalProperties": {
        "type": "object", "properties": {"source": _TEXT, "content": _TEXT}, "oneOf": [{"required": ["source"]},
                                                                                       {"required": ["content"]}]}}]},
    "component": {"anyOf": [_PATH, {"type": "object"}, {"type": "array", "items": {"anyOf": [_PATH, {"type": "object"}]}}]},
    "monitors": {"anyOf": [_PATH, {"type": "array", "items": {"anyOf": [_PATH, {"type": "object"}]}}]},
    "userConfig": {"type": "object", "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, "additionalProperties": {
        "type": "object", "required": ["type", "title", "description"], "additionalProperties": False,
        "properties": {"type": {"enum": list(t.USER_CONFIG_TYPES)}, "title": _TEXT, "description": _TEXT,
                       "sensitive": {"type": "boolean"},
                       "required": {"type": "boolean"}, "default": {"type": ["string", "number", "boolean", "array"]},
                       "multiple": {"type": "boolean"}, "min": {"type": "number"}, "max": {"type": "number"}}}},
    "channels": {"type": "array", "items": {
        "type": "object", "required": ["server"], "additionalProperties": False,
        "properties": {"server": _TEXT, "displayName": _TEXT, "userConfig": {"type": "object"}}}},
    "dependencies": {"type": "array", "items": {"anyOf": [{"type": "string", "pattern": "^[^\\s@]+(@[^\\s@]+)?$"}, {
        "type": "object", "required": ["name"],
        "properties": {"name": {"type": "string", "pattern": "^[^\\s@]+(@[^\\s@]+)?$"}, "version": _TEXT,
                       "marketplace": _TEXT}}]}},
    "source": {"anyOf": [_TEXT, {"oneOf": [
        {"type": "object", "required": ["source", *needs], "properties": {
            "source": {"const": kind}, **{key: {} for key in (*needs, *more)}}}
        for kind, (needs, more) in t.SOURCES.items()]}]},
    "renames": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
    "catalogueMetadata": {"type": "object", "properties": {"description": _TEXT, "version": _TEXT, "pluginRoot": _TEXT}},
    "transport": {"enum": ["stdio", "socket"]}, "shell": {"enum": list(t.SHELLS)},
    # frontmatter
    "text": {"type": ["string", "number"]}, "words": {"anyOf": [_TEXT, {"type": "array", "items": {"type": ["string",
                                                                                                            "number"]}}]},
    "tools": {"anyOf": [_TEXT, _TEXTS]}, "flag": {"anyOf": [{"type": "boolean"}, {"enum": [0, 1]}, {
        "type": "string",
        "pattern": "^(?:[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]|[Yy][Ee][Ss]|[Nn][Oo]|[Oo][Nn]|[Oo][Ff][Ff]|0|1)$"}]},
    "effort": {"enum": list(t.EFFORTS)}, "context": {"const": "fork"}, "color": {"enum": list(t.COLORS)},
    "memory": {"enum": list(t.MEMORIES)},
    "isolation": {"const": "worktree"}, "mode": {"enum": list(t.MODES)}, "positive": {"type": "integer", "minimum": 1},
    # settings
    "mode?": {"enum": list(t.MODES)}, "disable": {"const": "disable"}, "boolMap": {"type": "object",
                                                                                   "additionalProperties": {"type": "boolean"}},
    "objects": {"type": "array", "items": {"type": "object"}}, "integer": {"type": "integer"},
    "stringsOrTrue": {"anyOf": [{"const": True}, _TEXTS]},
}

_WORDS = {"string": "text", "boolean": "true or false", "number": "a number", "object": "an object",
          "strings": "a list of texts", "stringMap":
          "an object of texts", "paths": "a path or a list of paths", "commands": "a path, a list of paths, or an object",
          "component": "a path, an object, or a list of them", "monitors": "a path or a list of monitors",
          "userConfig": "an object",
          "channels": "a list of objects", "dependencies": "a list", "url": "a URL", "author": "an object with a name", "renames":
          "an object of names (or null)", "tools": "text or a list of texts", "words": "text or a list of texts", "text": "text",
          "positive": "a whole number above 0", "catalogueMetadata": "an object", "entries": "a list of objects",
          "source": "text or an object",
          "boolMap": "an object of true or false", "objects": "a list of objects", "integer": "a whole number",
          "disable": '"disable"',
          "stringsOrTrue": "true or a list of texts", "flag": "true or false"}


def described(word: str) -> str:
    if word in _WORDS:
        return _WORDS[word]
    schema = SCHEMAS.get(word, {})
    return "one of " + ", ".join(map(str, schema["enum"])) if "enum" in schema else str(schema.get("const", word))


def fits(word: str, value: Any) -> bool:
    """Whether a value has the outer shape of a type. More exact rules look inside."""
    text, number = isinstance(value, str), isinstance(value, int | float) and not isinstance(value, bool)
    texts = isinstance(value, list) and all(isinstance(v, str) for v in value)
    mapping = isinstance(value, dict)
    if word in ("string", "url"):
        return text
    if word in ("strings",):
        return texts
    if word in ("paths", "tools"):
        return text or texts
    if word in ("object", "author", "userConfig", "renames", "catalogueMetadata"):
        return mapping
    if word == "stringMap":
        return mapping and all(isinstance(v, str) for v in value.values())
    if word == "boolMap":
        return mapping and all(isinstance(v, bool) for v in value.values())
    if word == "boolean":
        return isinstance(value, bool)
    if word == "number":
        return number
    if word == "integer":
        return number and float(value).is_integer()
    if word == "commands":
        return text or texts or mapping
    if word in ("component", "monitors"):
        return text or (mapping and word == "component") or (isinstance(value, list) and all(isinstance(v,
            str | dict) for v in value))
    if word in ("channels", "dependencies", "entries"):
        return isinstance(value, list)
    if word == "objects":
        return isinstance(value, list) and all(isinstance(v, dict) for v in value)
    if word == "source":
        return text or mapping
    if word == "text":
        return text or number
    if word == "words":
        return text or (isinstance(value, list) and all(isinstance(v, str | int | float) for v in value))
    if word == "stringsOrTrue":
        return value is True or texts
    schema = SCHEMAS.get(word, {})
    return value in schema["enum"] if "enum" in schema else value == schema["const"] if "const" in schema else True
