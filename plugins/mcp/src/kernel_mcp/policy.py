"""Managed policy: which servers an organisation lets through (MCP contract, section 9). Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kernel_mcp.entries import Expander, Server

if TYPE_CHECKING:
    from kernel import Settings

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
KEYS = ("serverUrl", "serverCommand", "serverName")


class Lists:
    """The allow list (``None``: there is none anywhere) and the deny list of a run."""

    def __init__(self, allow: list[Any] | None, deny: list[Any], environment: Mapping[str, str] | None = None) -> None:
        env = dict(os.environ if environment is None else environment)
        self.allow = None if allow is None else [e for e in (_entry(a, env, allow=True) for a in allow) if e]
        self.deny = [e for e in (_entry(d, env, allow=False) for d in deny) if e]

    @classmethod
    def of(cls, settings: Settings) -> Lists:
        """The lists of every settings source; with ``allowManagedMcpServersOnly`` only the managed allow list counts."""
        only = settings.managed("allowManagedMcpServersOnly") is True
        allow: list[Any] | None = None
        for layer, value in settings.by_layer("allowedMcpServers"):
            if not only or layer.scope == "managed":
                # present but no list fails closed: it allows nothing
                allow = [*(allow or []), *(value if isinstance(value, list) else [])]
        if only and allow is None:
            allow = []
        deny = [d for _, value in settings.by_layer("deniedMcpServers") if isinstance(value, list) for d in value]
        return cls(allow, deny)

    def verdict(self, server: Server) -> str:
        """Why the server may not be used; empty where it may. Names are labels: they protect from nobody who wants in."""
        if any(_matches(key, value, server) for key, value in self.deny):
            return "denied by policy (deniedMcpServers)"
        if self.allow is None:
            return ""
        special = "serverUrl" if server.remote else "serverCommand" if server.kind == "stdio" else ""
        strict = any(key == special for key, _ in self.allow)
        for key, value in self.allow:
            if key == "serverName" and (strict or not _PLAIN.fullmatch(str(value))):
                continue
            if _matches(key, value, server):
                return ""
        return "not on the list of allowed servers (allowedMcpServers)"


def _entry(entry: Any, env: Mapping[str, str], *, allow: bool) -> tuple[str, Any] | None:
    found = [key for key in KEYS if isinstance(entry, dict) and key in entry]
    if len(found) != 1:
        return None
    key, value = found[0], entry[found[0]]
    expand = Expander(env, lambda text: None)
    if key == "serverCommand":
        fits = isinstance(value, list) and all(isinstance(v, str) for v in value)
        return (key, [expand(v, "") for v in value]) if fits else None
    if not isinstance(value, str) or not value:
        return None
    if key == "serverName":
        return key, value
    expanded = expand(value, "")
    if allow and _reach(value) != _reach(expanded):
        return None  # a variable must not widen what the pattern says
    return key, expanded


def _reach(pattern: str) -> tuple[str, str, bool]:
    """Scheme, host, and whether there is a path: what a variable in an allow pattern must leave as it is."""
    scheme, _, rest = pattern.partition("://")
    host, slash, _ = rest.partition("/")
    return scheme.lower(), host.lower(), bool(slash)


def _matches(key: str, value: Any, server: Server) -> bool:
    if key == "serverName":
        return bool(value == server.name)
    if key == "serverCommand":
        return server.kind == "stdio" and value == [server.command, *server.args]
    return server.remote and url_matches(value, server.url)


def url_matches(pattern: str, url: str) -> bool:
    """``*`` stands for anything; the host regardless of case and a final dot, the path exactly; no path fits any path."""
    try:
        there = urlsplit(url)
        port = there.port
    except ValueError:
        return False
    host = (there.hostname or "").rstrip(".")
    place = f"{host}:{port}" if port is not None else host
    scheme, divider, rest = pattern.partition("://")
    if not divider:
        scheme, rest = "*", pattern
    wanted, slash, path = rest.partition("/")
    name, colon, number = wanted.rpartition(":") if re.search(r":[\d*]+$", wanted) else (wanted, "", "")
    wanted = f"{name.rstrip('.')}{colon}{number}".lower()
    if not _like(scheme.lower(), there.scheme.lower()) or not _like(wanted, place.lower()):
        return False
    target = (there.path or "/").removeprefix("/") + (f"?{there.query}" if there.query else "")
    return not slash or _like(path, target)


def _like(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None
