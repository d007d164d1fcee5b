"""ToolSearch: find tools by words and show their schemas (tools contract, section 15)."""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from kernel import Session, Tool, ToolContext, ToolResult
from kernel_tools_user import manuals

BRIDGE = "mcp"
"""Where the plugin that holds the connections to servers puts its bridge: ``session.plugin_state[BRIDGE]``."""
DEFAULT_RESULTS = 5
SCHEMA_CHARS = 40_000
"""About 10,000 tokens; what does not fit is named only."""

_NAME, _NAME_PART, _DESCRIPTION = 12, 6, 2
"""What a word is worth where it is found: as a part of the name, inside a part, in the description."""


class Found(NamedTuple):
    tools: list[Tool]
    missing: list[str]


def candidates(session: Session) -> list[Tool]:
    """Every tool once, deferred ones first."""
    tools = {t.name: t for t in session.toolbox.by_name.values() if not isinstance(t, ToolSearch)}
    return sorted(tools.values(), key=lambda t: not is_deferred(t))


def is_deferred(tool: Tool) -> bool:
    return bool(getattr(tool, "defer", False))


def find(tools: list[Tool], query: str, limit: int) -> Found:
    """``select:A,B`` takes names, ``+word`` requires a word, other words are ranked; a full name in the query comes first."""
    if query.strip().lower().startswith("select:"):
        return _select(tools, query.strip()[len("select:"):], limit)
    words = query.split()
    required = [w[1:].lower() for w in words if w.startswith("+") and len(w) > 1]
    wanted = [*required, *(w.lower() for w in words if not w.startswith("+"))]
    named = _by_name(tools, [w.strip("`'\",;:().").removeprefix("+") for w in words])
    sought = [_Word(w, w in required) for w in wanted]
    ranked = [(_Text.of(t).score(sought), t) for t in tools if t not in named]
    best = sorted((r for r in ranked if r[0]), key=lambda r: -r[0])  # stable: ties keep their order
    return Found([*named, *(t for _, t in best)][:limit], [])


def _select(tools: list[Tool], names: str, limit: int) -> Found:
    asked = [n.strip() for n in names.split(",") if n.strip()]
    hits = {n: _by_name(tools, [n]) for n in asked}
    return Found(list(dict.fromkeys(t for found in hits.values() for t in found))[:limit], [n for n in hits if not hits[n]])


def _by_name(tools: list[Tool], names: list[str]) -> list[Tool]:
    known = {name.lower(): t for t in reversed(tools) for name in (*t.aliases, t.name)}
    return list(dict.fromkeys(known[n.lower()] for n in names if n.lower() in known))


_PLAIN = bytes(ord(chr(c).lower()) if chr(c).isascii() and chr(c).isalnum() else 32 for c in range(256))
"""Bytes to lower-case letters, digits and blanks: one pass over a text, so that a thousand tools are searched at once."""


class _Text:
    """A tool as text: as it is, and as plain words between blanks."""

    def __init__(self, tool: Tool) -> None:
        self.name = tool.name.lower()
        self._parts = _plain(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", tool.name))
        self._description = tool.description
        self._words = _plain(f"{tool.description} {getattr(tool, 'search_hint', '')}")

    @classmethod
    def of(cls, tool: Tool) -> _Text:
        """The text of a tool, made once."""
        text = _texts.get(tool)
        if text is None:
            text = _texts[tool] = cls(tool)
        return text

    def score(self, words: list[_Word]) -> int:
        """What the words are worth together; 0 where a required one is missing."""
        total = 0
        for word in words:
            worth = 0
            if word.text in self.name:
                worth = _NAME if word.alone in self._parts else _NAME_PART
            if worth < _NAME and word.raw in self._words:
                worth += 2 * _DESCRIPTION if word.alone in self._words else _DESCRIPTION
            if not word.plain and word.text in self._description.lower():
                worth = max(worth, _DESCRIPTION)
            if not worth and word.required:
                return 0
            total += worth
        return total


class _Word:
    """A word of a query, in the forms in which it is looked for."""

    def __init__(self, text: str, required: bool) -> None:
        self.text = text
        self.required = required
        self.plain = text.isascii() and text.isalnum()
        self.raw = text.encode() if self.plain else b"\0"  # what is no plain word is in no plain text
        self.alone = b" %b " % self.raw


_texts: WeakKeyDictionary[Tool, _Text] = WeakKeyDictionary()


def _plain(text: str) -> bytes:
    return b" %b " % text.encode("ascii", "replace").translate(_PLAIN)


class ToolSearch(Tool):
    name = "ToolSearch"
    description = "Finds tools by name or by words and shows how they are called."
    permission = "free"
    max_result_chars = 60_000
    input_schema = {
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": "Words, +required words, or select:Name1,Name2."},
            "max_results": {"type": "integer", "minimum": 1, "default": DEFAULT_RESULTS,
                            "description": f"At most that many tools; never more than {DEFAULT_RESULTS}."},
        },
        "required": ["query"], "additionalProperties": False,
    }
    output_schema = {
        "type": "object",
        "properties": {"matches": {"type": "array", "items": {"type": "string"}}, "query": {"type": "string"},
                       "missing": {"type": "array", "items": {"type": "string"}}},
        "required": ["matches", "query"],
    }

    def prompt(self) -> str:
        return manuals.SEARCH

    def is_enabled(self, session: Session) -> bool:
        return bool(session.toolbox.deferred) or any(is_deferred(t) for t in session.harness.tools)

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        limit = min(input.get("max_results") or DEFAULT_RESULTS, DEFAULT_RESULTS)
        bridge = context.session.plugin_state.get(BRIDGE)
        if bridge is not None:
            await bridge.ready(context.session)  # servers that still connect may have what is looked for
        found = find(candidates(context.session), input["query"], limit)
        structured: dict[str, Any] = {"matches": [t.name for t in found.tools], "query": input["query"]}
        if found.missing:
            structured["missing"] = found.missing
        text, shown = _shown(found)
        context.session.toolbox.load(shown)  # in the requests from the next one on, for the rest of the session
        return ToolResult(content=text, structured=structured, status="success" if found.tools else "empty")


def _shown(found: Found) -> tuple[str, list[str]]:
    """The definitions as JSON, one tool in a line; tools over the budget by name. And the names of those shown whole."""
    import msgspec

    lines: list[str] = []
    whole: list[str] = []
    room = SCHEMA_CHARS
    for tool in found.tools:
        line = msgspec.json.encode(tool.definition()).decode("utf-8", "replace")
        if len(line) > room:
            line = f"{tool.name}: its schema is too long to be shown beside the others (select:{tool.name} shows it first)"
            line = line if lines else f"{tool.name}: its schema is too long to be shown"
            if not lines:
                whole.append(tool.name)  # its definition is in the next request all the same
        else:
            whole.append(tool.name)
        room -= len(line)
        lines.append(line)
    if not lines:
        lines.append("No tool matches. Try other words, or fewer required ones.")
    if found.missing:
        lines.append(f"There is no tool named {', '.join(found.missing)}.")
    return "\n".join(lines), whole
