"""What a folder's own files hold that runs something or widens rights, in the words of what will really be started."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from kernel import Component, Frontmatter, Settings, components_in, git_root, read_frontmatter

WIDENS = {"permissions.allow": "allow rules", "permissions.additionalDirectories": "further folders",
          "permissions.defaultMode": "a permission mode", "enabledPlugins": "plugins", "extraKnownMarketplaces": "marketplaces",
          "apiKeyHelper": "a command that gives the key", "statusLine": "a status line", "outputStyle": "an output style",
          "kernel": "settings of kernel"}
KINDS: tuple[Literal["skills", "commands", "agents"], ...] = ("skills", "commands", "agents")
HEAD = {"allowed-tools": "allows", "permissionMode": "permission mode", "mcpServers": "MCP servers"}
"""Fields of a skill's, command's or agent's head that are named, besides its hooks."""
MOST_FILES = 500
"""Skills, commands and agents that are looked into; how many were not is said."""
_COMMAND = re.compile(r"^```![ \t]*\n|(?<!\S)!`([^`\n]+)`", re.MULTILINE)


def brought(settings: Settings) -> list[tuple[str, list[str]]]:
    """As (kind, entries); an entry is whole."""
    found: list[tuple[str, list[str]]] = []
    theirs = [layer for layer in settings.layers if layer.scope in ("project", "local")]
    found.append(("Hooks, commands that run by themselves", [t for layer in theirs for t in hooks(layer.data.get("hooks"))]))
    found.append(("Skills, commands and agents that run something or widen rights", list(_components(settings))))
    at_once, asked = _servers(settings)
    found.append(("MCP servers that start without a further question", at_once))
    found.append(("MCP servers (asked about one by one)", asked))
    found.append(("Environment variables", [f"{k}={v}" for layer in theirs for k, v in _items(layer.data.get("env"))]))
    for key, title in WIDENS.items():
        values = [value for layer, value in settings.by_layer(key) if layer in theirs]
        found.append((title[0].upper() + title[1:], [text for value in values for text in _texts(value)]))
    return [(title, entries) for title, entries in found if entries]


def files(settings: Settings) -> list[str]:
    """Where all of it can be read."""
    here = [Path(layer.path) for layer in settings.layers if layer.scope in ("project", "local")]
    here += [settings.project_root / ".mcp.json", *(place / kind for place in _places(settings) for kind in KINDS)]
    return [str(path) for path in here if path.exists()]


# -- hooks -----------------------------------------------------------------------------------------------------------------
def hooks(value: Any) -> Iterator[str]:
    """Each handler with its event and matcher."""
    for event, groups in _items(value):
        for group in groups if isinstance(groups, list) else ():
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for handler in handlers if isinstance(handlers, list) else ():
                matcher = group.get("matcher")
                yield f"{event}{f' ({matcher})' if isinstance(matcher, str) and matcher else ''}: {_handler(handler)}"


def _handler(handler: Any) -> str:
    given = handler if isinstance(handler, dict) else {}
    match given.get("type"):
        case "command" if isinstance(given.get("command"), str):
            return _started(given) + (" (in PowerShell)" if given.get("shell") == "powershell" else "")
        case "http" if isinstance(given.get("url"), str):
            return f"sends what happens to {given['url']}"
        case "mcp_tool":
            of = f"{given.get('tool')} of the MCP server {given.get('server')}"
            return f"calls the tool {of} with {_json(given.get('input', {}))}"
        case "prompt" | "agent" as kind:
            return f"{'asks a model' if kind == 'prompt' else 'starts an agent'}: {given.get('prompt')}"
    return _json(handler)


def _started(given: dict[str, Any]) -> str:
    """A command as it is written; with arguments of its own: as a shell would have to be told."""
    arguments = given.get("args")
    if not isinstance(arguments, list):
        return str(given.get("command"))
    return shlex.join(map(str, [given.get("command"), *arguments]))


# -- MCP servers -----------------------------------------------------------------------------------------------------------
def server(entry: Any) -> str:
    """What an entry of ``.mcp.json`` starts or talks to: its type decides, without one its command (MCP contract, 1.2)."""
    if not isinstance(entry, dict):
        return f"cannot be used: {_json(entry)}"
    kind = "stdio" if entry.get("type") is None else entry["type"]
    if kind == "stdio" and isinstance(entry.get("command"), str):
        told = f"runs {_started(entry)}"
    elif isinstance(kind, str) and kind != "stdio" and isinstance(entry.get("url"), str):
        told = f"{kind}, {entry['url']}"
    else:
        told = f"cannot be used: {_json(entry)}"
    if isinstance(entry.get("headersHelper"), str) and kind != "stdio":
        told += f"; runs {entry['headersHelper']}"
    for key, what in (("env", "variables"), ("headers", "headers")):
        if names := [name for name, _ in _items(entry.get(key))]:
            told += f"; sets the {what} {', '.join(names)}"
    return told


def _servers(settings: Settings) -> tuple[list[str], list[str]]:
    """Those that a yes starts at once, and those that are asked about."""
    every = any(value is True for _, value in settings.by_layer("enableAllProjectMcpServers"))
    named = [name for _, names in settings.by_layer("enabledMcpjsonServers") if isinstance(names, list)
             for name in names if isinstance(name, str)]
    try:
        data = json.loads((settings.project_root / ".mcp.json").read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        data = None
    entries = dict(_items(data.get("mcpServers") if isinstance(data, dict) else None))
    at_once = [f"{name}: {server(entry)}" for name, entry in entries.items() if every or name in named]
    if every:
        at_once.append("every server that .mcp.json will ever hold (enableAllProjectMcpServers)")
    at_once += [f"{name}: whatever .mcp.json will say of it (enabledMcpjsonServers)"
                for name in dict.fromkeys(named) if name not in entries]
    return at_once, [f"{name}: {server(entry)}" for name, entry in entries.items() if not every and name not in named]


# -- skills, commands, agents ----------------------------------------------------------------------------------------------
def _places(settings: Settings) -> Iterator[Path]:
    """The ``.claude`` folders of the project, up to the root of its repository."""
    start = Path(settings.project_root)
    top = git_root(start)
    for place in (start, *start.parents):
        if (top is None and place != start) or (top is not None and not place.is_relative_to(top)):
            return
        if (place / ".claude").resolve() != settings.config_dir.resolve():
            yield place / ".claude"


def _components(settings: Settings) -> Iterator[str]:
    root = git_root(Path(settings.project_root)) or Path(settings.project_root)
    items = [item for place in _places(settings) for kind in KINDS
             for item in components_in(place / kind, kind, "project", root).items]
    for item in items[:MOST_FILES]:
        if told := list(_does(item, read_frontmatter(item.path))):
            place = Path(item.path)
            where = place.relative_to(root) if place.is_relative_to(root) else place
            yield f"{item.kind.removesuffix('s')} {item.name} ({where}): {'; '.join(told)}"
    if len(items) > MOST_FILES:
        yield f"… and {len(items) - MOST_FILES} more files that were not looked into"


def _does(item: Component, read: Frontmatter) -> Iterator[str]:
    for key, what in HEAD.items():
        if value := read.fields.get(key):
            yield f"{what} {value if isinstance(value, str) else _json(value)}"
    for text in hooks(read.fields.get("hooks")):
        yield f"hook {text}"
    if read.lost:
        yield f"its head cannot be understood: {read.problem}"
    if item.kind != "agents":
        for command in dict.fromkeys(commands(read.body)):
            yield f"runs {command}"


def commands(text: str) -> Iterator[str]:
    """What a text runs when it is used: each !`command` and each block that begins with ```!."""
    at, closes = 0, True
    while found := _COMMAND.search(text, at):
        at = found.end()
        if found[1] is not None:
            yield found[1]
        elif closes:
            end = text.find("```", at)
            closes = end >= 0
            if closes:
                yield text[at:end].strip("\n")
                at = end + 3


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [v if isinstance(v, str) else _json(v) for v in value]
    return [f"{k}: {_json(v)}" for k, v in value.items()] if isinstance(value, dict) else [str(value)]


def _json(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)
