"""One configured server: the entry of a file as a checked, expanded object (MCP contract, section 1.2)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct, field

from kernel_mcp.redact import arguments, without_secrets

Kind = Literal["stdio", "http", "sse", "ws", "sdk"]
Scope = Literal["managed", "run", "local", "project", "user", "plugin", "agent"]

TYPES: dict[str, Kind] = {"stdio": "stdio", "http": "http", "streamable-http": "http", "streamable_http": "http", "sse": "sse",
                          "ws": "ws", "sdk": "sdk"}
RESERVED = frozenset({"workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser"})
LEAST_TIMEOUT_MS = 1000
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_.]*)(?::-([^}]*))?\}")


class Server(Struct, frozen=True, kw_only=True):
    """One server, ready to be connected. ``name`` is the registered one; ``raw`` the entry as written, before expansion.

    ``timeout_ms``: hard limit of one call, ``None`` for the default. ``root``, ``data``: the folders of its plugin.
    ``instance``: a server object that lives in this process.
    """

    name: str
    kind: Kind
    scope: Scope
    source: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    headers_helper: str = ""
    oauth: dict[str, Any] = field(default_factory=dict)
    timeout_ms: int | None = None
    always_load: bool = False
    root: str | None = None
    data: str = ""
    raw: dict[str, Any] = field(default_factory=dict)
    instance: Any = None

    @property
    def remote(self) -> bool:
        return self.kind in ("http", "sse", "ws")

    @property
    def places(self) -> dict[str, str]:
        """The folders of its plugin, as variables for what is started for it."""
        return {"CLAUDE_PLUGIN_ROOT": self.root, "CLAUDE_PLUGIN_DATA": self.data} if self.root else {}

    @property
    def endpoint(self) -> tuple[Any, ...]:
        """What two entries share that lead to the same server."""
        if self.remote:
            return ("url", self.url)
        return ("command", self.command, *self.args) if self.kind == "stdio" else ("name", self.name)

    def shown(self) -> dict[str, Any]:
        """The entry for people and programs: as written, with secret values masked."""
        shown = {k: v for k, v in self.raw.items() if k in ("type", "command", "args", "url", "timeout", "alwaysLoad")}
        shown.setdefault("type", self.kind)
        if isinstance(shown.get("url"), str):
            shown["url"] = without_secrets(shown["url"])
        if isinstance(shown.get("args"), list):
            shown["args"] = arguments(map(str, shown["args"]))
        for key in ("env", "headers"):
            if isinstance(self.raw.get(key), dict):
                shown[key] = {name: masked(value) for name, value in self.raw[key].items()}
        return shown


class BadEntry(Exception):
    """An entry that cannot be used. ``kind`` is the type of the init message's ``mcp_server_errors``."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def masked(value: Any) -> str:
    """A value that may be a secret: references to variables may be seen, anything else may not."""
    return value if isinstance(value, str) and _VARIABLE.fullmatch(value) and ":-" not in value else "***"


def parse(name: str, entry: Any, scope: Scope, source: str, *, variables: Mapping[str, str] | None = None,
          root: str | None = None, data: str = "", warn: Callable[[str], None] = lambda text: None) -> Server | None:
    """The server that an entry describes; ``None`` for one that is not configured (an empty ``url``).

    :param variables: what ``${NAME}`` may stand for besides the environment (plugin paths, options of a person).
    :param warn: told of what is used although it looks wrong.
    :raises BadEntry: it cannot be used.
    """
    if name in RESERVED:
        raise BadEntry("reserved_name", f"the name {name!r} is reserved")
    if not isinstance(name, str) or not name.strip():
        raise BadEntry("invalid_config", "a server needs a name")
    if not isinstance(entry, dict):
        raise BadEntry("invalid_config", "the entry must be an object")
    given = entry.get("type")
    if given is None and "url" in entry and "command" not in entry:
        raise BadEntry("url_missing_type", 'an entry with "url" needs "type": "http" or "sse"')
    kind = TYPES.get(given or "stdio") if isinstance(given, str | None) else None
    if kind is None:
        raise BadEntry("unknown_type", f"unknown type {given!r}; known: {', '.join(TYPES)}")
    expand = Expander(variables or {}, warn)
    common: dict[str, Any] = {"name": name, "kind": kind, "scope": scope, "source": source, "root": root, "data": data,
                              "raw": entry, "timeout_ms": _timeout(entry.get("timeout"), warn),
                              "always_load": entry.get("alwaysLoad") is True}
    if kind == "sdk":
        return Server(**common)
    if kind == "stdio":
        command = entry.get("command")
        if not isinstance(command, str) or not command.strip():
            raise BadEntry("invalid_config", '"command" must be the name of a program')
        return Server(**common, command=expand(command, "command"), env=_texts(entry, "env", expand),
                      args=tuple(expand(a, "args") for a in _list(entry, "args")))
    url = entry.get("url")
    if not isinstance(url, str):
        raise BadEntry("invalid_config", '"url" must be a text')
    if not url.strip():
        return None
    helper = entry.get("headersHelper") or ""
    if not isinstance(helper, str):
        raise BadEntry("invalid_config", '"headersHelper" must be a shell command')
    if "${user_config." in helper:
        raise BadEntry("invalid_config", '"headersHelper" must not hold ${user_config.*}: read the option in the script')
    oauth = entry.get("oauth") or {}
    if not isinstance(oauth, dict):
        raise BadEntry("invalid_config", '"oauth" must be an object')
    address = expand(url, "url")
    if not re.match(r"wss?://" if kind == "ws" else r"https?://", address, re.IGNORECASE):
        raise BadEntry("invalid_config", f'"url" must begin with {"ws" if kind == "ws" else "http"}:// or the like')
    return Server(**common, url=address, headers=_texts(entry, "headers", expand), headers_helper=helper, oauth=oauth)


def _timeout(value: Any, warn: Callable[[str], None]) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value < LEAST_TIMEOUT_MS:
        warn(f'"timeout" is ignored: it must be at least {LEAST_TIMEOUT_MS} milliseconds')
        return None
    return int(value)


def _list(entry: dict[str, Any], key: str) -> list[str]:
    value = entry.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or any(not isinstance(v, str) for v in value):
        raise BadEntry("invalid_config", f'"{key}" must be a list of texts')
    return value


def _texts(entry: dict[str, Any], key: str, expand: Expander) -> dict[str, str]:
    value = entry.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict) or any(not isinstance(v, str) for v in value.values()):
        raise BadEntry("invalid_config", f'"{key}" must be an object of texts')
    if any("\0" in k + v or ("=" in k and key == "env") for k, v in value.items()):
        raise BadEntry("invalid_config", f'"{key}" holds a name that cannot be used')
    for name in value:
        expand.look(name, key)
    return {k: expand(v, f"{key}.{k}") for k, v in value.items()}


class Expander:
    """``${VAR}`` and ``${VAR:-default}``; what is not set and has no default stays as it is, with a warning."""

    def __init__(self, variables: Mapping[str, str], warn: Callable[[str], None]) -> None:
        self.variables = variables
        self.warn = warn

    def __call__(self, text: str, where: str) -> str:
        def value(match: re.Match[str]) -> str:
            found = self.variables.get(match[1], os.environ.get(match[1]))
            if found is None:
                found = match[2]
            if found is None:
                self.warn(f"{where}: {match[0]} is not set and has no default")
                return match[0]
            return found

        self.look(text, where)
        return _VARIABLE.sub(value, text)

    def look(self, text: str, where: str) -> None:
        if text != text.strip():
            self.warn(f"{where}: there is white space at the end or the beginning")
