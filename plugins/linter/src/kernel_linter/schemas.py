"""JSON Schemas (2020-12) of every file kind, from the tables that the rules use."""

from __future__ import annotations

from typing import Any

from kernel_linter import tables as t
from kernel_linter.settings_table import SETTINGS
from kernel_linter.types import SCHEMAS, Schema

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def _fields(table: dict[str, str]) -> dict[str, Schema]:
    return {name: dict(SCHEMAS[word]) for name, word in table.items() if word in SCHEMAS}


def _manifest() -> Schema:
    fields = _fields(t.MANIFEST)
    fields["name"] = {"type": "string", "minLength": 1, "pattern": r"^\S+$"}
    fields["experimental"] = {"type": "object", "properties": _fields(t.EXPERIMENTAL)}
    fields["metadata"] = {"type": "object"}
    return {"type": "object", "required": ["name"], "properties": fields}


def _entry() -> Schema:
    fields = {**_manifest()["properties"], **_fields(t.ENTRY_ONLY)}
    return {"type": "object", "required": ["name", "source"], "properties": fields}


def _marketplace() -> Schema:
    fields = _fields(t.MARKETPLACE)
    fields["name"] = {"type": "string", "minLength": 1, "pattern": r"^[^\s/\\]+$"}
    fields["plugins"] = {"type": "array", "items": _entry()}
    return {"type": "object", "required": ["name", "owner", "plugins"], "properties": fields}


def _handler(kind: str) -> Schema:
    needs, more = t.HANDLER_TYPES[kind]
    fields = {**_fields({**t.HANDLER_COMMON, **more}), **{k: {"type": "string", "minLength": 1} for k in needs},
              "type": {"const": kind}}
    fields["timeout"] = {"type": "number", "exclusiveMinimum": 0}
    return {"type": "object", "required": ["type", *needs], "properties": fields}


def hook_map() -> Schema:
    """``{Event: [groups]}``; an event only takes its own handler types."""
    def group(types: tuple[str, ...]) -> Schema:
        return {"type": "array", "items": {"type": "object", "required": ["hooks"], "properties": {
            "matcher": {"type": "string"}, "hooks": {"type": "array",
                                                     "items": {"oneOf": [{"$ref": f"#/$defs/{k}"} for k in types]}}}}}

    return {"type": "object", "additionalProperties": False, "properties": {event: group(types) for event, (_,
        types) in t.EVENTS.items()}}


def _handlers() -> dict[str, Schema]:
    return {kind: _handler(kind) for kind in t.HANDLER_TYPES}


def _hooks() -> Schema:
    return {"type": "object", "required": ["hooks"], "properties": {"description": {"type": "string"}, "hooks": hook_map()},
            "$defs": _handlers()}


def _frontmatter(table: dict[str, str], required: tuple[str, ...] = ()) -> Schema:
    out: Schema = {"type": "object", "properties": _fields(table)}
    return {**out, "required": list(required)} if required else out


def _server() -> Schema:
    fields = _fields(t.MCP)
    fields["type"] = {"enum": list(t.MCP_TYPES)}
    return {"type": "object", "properties": fields, "anyOf": [{"required": ["command"]}, {"required": ["url", "type"]}]}


def _mcp() -> Schema:
    return {"type": "object", "required": ["mcpServers"], "properties": {"mcpServers": {"type": "object",
                                                                                        "additionalProperties": _server()}}}


def _lsp() -> Schema:
    fields = _fields(t.LSP)
    fields["command"] = {"type": "string", "minLength": 1, "pattern": r"^(?:\S+|[/$].*)$"}
    fields["extensionToLanguage"] = {"type": "object", "minProperties": 1, "propertyNames": {"pattern": r"^\."},
                                     "additionalProperties": {"type": "string", "minLength": 1}}
    server = {"type": "object", "required": ["command", "extensionToLanguage"], "additionalProperties": False,
              "properties": fields}
    return {"type": "object", "properties": {"$schema": {"type": "string"}}, "additionalProperties": server}


def _monitors() -> Schema:
    fields = _fields(t.MONITOR)
    fields["when"] = {"type": "string", "pattern": r"^(?:always|on-skill-invoke:\S+)$"}
    return {"type": "array", "items": {"type": "object", "required": ["name", "command", "description"], "properties": fields}}


def _theme() -> Schema:
    color = r"^(?:#[0-9a-fA-F]{3}(?:[0-9a-fA-F]{3})?|rgb\(.*\)|ansi256\(\d{1,3}\)|ansi:\w+)$"
    return {"type": "object", "properties": {"name": {"type": "string"}, "base": {"enum": list(t.THEME_BASES)},
                                             "overrides": {"type": "object", "additionalProperties": {"type": "string",
                                                                                                      "pattern": color}}}}


def _settings() -> Schema:
    out: Schema = {"type": "object", "properties": {}, "$defs": _handlers()}
    for path, word in SETTINGS.items():
        at = out
        *above, last = path.split(".")
        for step in above:
            at = at["properties"].setdefault(step, {"type": "object"})
            at.setdefault("properties", {})
        made = dict(SCHEMAS[word])
        at["properties"][last] = {**at["properties"].get(last, {}), **made}
    out["properties"]["hooks"] = hook_map()
    return out


_BUILDERS: dict[str, Any] = {
    "manifest": _manifest, "marketplace": _marketplace, "hooks": _hooks, "skill": lambda: _frontmatter(t.SKILL),
    "command": lambda: _frontmatter({k: v for k, v in t.SKILL.items() if k not in ("name", "paths")}),
    "agent": lambda: _frontmatter(t.AGENT, ("name", "description")), "style": lambda: _frontmatter(t.STYLE), "mcp": _mcp,
    "lsp": _lsp,
    "monitors": _monitors, "theme": _theme, "settings": _settings,
}
KINDS = tuple(_BUILDERS)


def schema(kind: str) -> Schema:
    """The schema of one kind of file or frontmatter."""
    return {"$schema": DRAFT, "title": f"kernel {kind}", **_BUILDERS[kind]()}
