"""What an agent is: the fields of its file or its JSON entry (subagents contract, 1.2)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

if TYPE_CHECKING:
    from kernel import Frontmatter, Plugin

Source = Literal["managed", "flag", "project", "added", "user", "plugin", "built-in"]
EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})
MODES = frozenset({"default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"})
MEMORIES = frozenset({"user", "project", "local"})


class Definition(Struct, kw_only=True):
    """One agent. ``tools``: ``None`` where all are meant; ``lean``: without instructions and surroundings; ``once``: it cannot be
    resumed. ``model``: ``None`` is the parent's. ``problems``: fields that do not count, in words.
    """

    name: str
    description: str
    prompt: str = ""
    source: Source = "project"
    path: str = ""
    plugin: Plugin | None = None
    tools: list[str] | None = None
    disallowed: list[str] = field(default_factory=list)
    model: str | None = None
    mode: str | None = None
    max_turns: int | None = None
    skills: list[str] = field(default_factory=list)
    servers: list[Any] = field(default_factory=list)
    hooks: dict[str, Any] | None = None
    memory: str | None = None
    background: bool = False
    effort: str | None = None
    isolated: bool = False
    initial_prompt: str = ""
    reminder: str = ""
    lean: bool = False
    once: bool = False
    problems: list[str] = field(default_factory=list)

    @property
    def spawns(self) -> list[str] | None:
        """The types that ``Agent(a, b)`` in its tools names; ``None``: any."""
        for tool in self.tools or ():
            match = _AGENT_LIST.fullmatch(tool)
            if match:
                return [name.strip() for name in match[1].split(",") if name.strip()]
        return None


NOT_OF_PLUGINS = ("permissionMode", "mcpServers", "hooks")
"""Fields that do not count in a plugin's agent (1.2)."""
_AGENT_LIST = re.compile(r"(?:Agent|Task)\((.*)\)", re.DOTALL)
_ODD = re.compile(r"[^\w .+@:-]")
_ENTRY = re.compile(r"(?:[^,()]|\([^()]*\))+")


def tool_list(value: Any) -> list[str] | None:
    """A list of tool names from a comma list or a YAML list; ``None`` where it is neither. Commas in brackets do not part."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        return None
    return [entry.strip() for text in value for entry in _ENTRY.findall(text) if entry.strip()]


class Reader:
    """Takes fields one by one; what has the wrong type is named and does not count."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        self.problems: list[str] = []

    def _wrong(self, name: str, expected: str) -> None:
        self.problems.append(f"{name}: must be {expected}, not {self.fields[name]!r:.80}; it does not count")

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        if value is None or isinstance(value, str):
            return (value or "").strip()
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        self._wrong(name, "text")
        return ""

    def choice(self, name: str, allowed: frozenset[str]) -> str | None:
        value = self.fields.get(name)
        if value is None:
            return None
        if isinstance(value, str) and value in allowed:
            return value
        self._wrong(name, f"one of {', '.join(sorted(allowed))}")
        return None

    def flag(self, name: str) -> bool:
        value = self.fields.get(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        self._wrong(name, "true or false")
        return False

    def number(self, name: str) -> int | None:
        value = self.fields.get(name)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
        self._wrong(name, "a whole number above 0")
        return None

    def tools(self, name: str) -> list[str] | None:
        """The safe side for an allow list that cannot be read is an empty one."""
        value = self.fields.get(name)
        if value is None:
            return None
        found = tool_list(value)
        if found is None:
            self._wrong(name, "a list of tool names")
            return []
        return found

    def names(self, name: str) -> list[str]:
        found = tool_list(self.fields[name]) if self.fields.get(name) is not None else []
        if found is None:
            self._wrong(name, "a list of names")
        return found or []

    def kind(self, name: str, kind: type, expected: str) -> Any:
        value = self.fields.get(name)
        if value is None or isinstance(value, kind):
            return value
        self._wrong(name, expected)
        return None


def from_fields(name: str, fields: dict[str, Any], prompt: str, source: Source, *, path: str = "",
                plugin: Plugin | None = None) -> Definition:
    """A definition. Of a plugin's agent, permission mode, MCP servers and hooks do not count (1.2)."""
    read = Reader(fields)
    owned = source == "plugin"
    model = read.text("model")
    made = Definition(
        name=name, description=read.text("description"), prompt=prompt.strip(), source=source, path=path, plugin=plugin,
        tools=read.tools("tools"), disallowed=read.tools("disallowedTools") or [],
        model=None if model in ("", "inherit") else model, mode=None if owned else read.choice("permissionMode", MODES),
        max_turns=read.number("maxTurns"), skills=read.names("skills"),
        servers=[] if owned else _servers(read),
        hooks=None if owned else read.kind("hooks", dict, "a map of event names"), memory=read.choice("memory", MEMORIES),
        background=read.flag("background"), effort=_effort(read),
        isolated=read.choice("isolation", frozenset({"worktree"})) is not None,
        initial_prompt=read.text("initialPrompt"), reminder=read.text("criticalSystemReminder_EXPERIMENTAL"))
    made.problems = read.problems
    return made


def _servers(read: Reader) -> list[Any]:
    """A list of names and ``{name: entry}``; a map of entries means the same."""
    value = read.fields.get("mcpServers")
    if isinstance(value, dict):
        return [{name: entry} for name, entry in value.items()]
    return list(read.kind("mcpServers", list, "a list") or [])


def _effort(read: Reader) -> str | None:
    value = read.fields.get("effort")
    if isinstance(value, int | float) and not isinstance(value, bool):  # SDK only; the nearest level
        return "low" if value < 25 else "medium" if value < 50 else "high" if value < 90 else "max"
    return read.choice("effort", EFFORTS)


def from_file(parsed: Frontmatter, place: str, source: Source, *, path: str, plugin: Plugin | None) -> Definition | str:
    """A definition, or why the file is skipped.

    :param place: the name that a plugin's file has by its place, ``plugin:folder:name`` without the plugin.
    """
    fields = parsed.fields
    name = fields.get("name")
    if plugin is not None:
        base = name if isinstance(name, str) and _good(name) else place.rpartition(":")[2]
        folder = place.rpartition(":")[0]
        base, folder = _ODD.sub("-", base), _ODD.sub("-", folder)
        full = ":".join(part for part in (plugin.name, folder, base) if part)
        return from_fields(full, fields, parsed.body, source, path=path, plugin=plugin)
    if parsed.lost or not parsed.readable:
        return parsed.problem or "the frontmatter does not parse"
    if not isinstance(name, str) or not name.strip():
        return "name: is missing"
    if not _good(name.strip()):
        return f"name: {name!r} must be letters, digits and hyphens, without ':' and without '-' at its beginning"
    if not isinstance(fields.get("description"), str) or not fields["description"].strip():
        return "description: is missing"
    return from_fields(name.strip(), fields, parsed.body, source, path=path)


def _good(name: str) -> bool:
    return bool(re.fullmatch(r"\w[\w .+@-]{0,127}", name))


def from_json(name: str, entry: Any) -> Definition | str:
    """An entry of ``--agents`` or of the SDK; why it does not count, otherwise."""
    if not _good(name):
        return f"{name!r}: a name must be letters, digits and hyphens"
    if not isinstance(entry, dict):
        return f"{name}: must be an object"
    for key in ("description", "prompt"):
        if not isinstance(entry.get(key), str) or not entry[key].strip():
            return f"{name}.{key}: must be text"
    return from_fields(name, entry, entry["prompt"], "flag")
