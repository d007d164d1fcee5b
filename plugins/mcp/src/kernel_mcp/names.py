"""Names of tools and servers as the model and the rules see them (MCP contract, section 3)."""

from __future__ import annotations

import re
from hashlib import sha256

MAX_NAME = 64
"""The shortest limit that a model API sets for the name of a tool."""
_HASH = 8
_OUTSIDE = re.compile(r"[^A-Za-z0-9_-]")


def normalise(text: str) -> str:
    """Every character outside ``A-Za-z0-9_-`` becomes ``_``."""
    return _OUTSIDE.sub("_", text)


def full_name(server: str, item: str, *, prefix: bool = True) -> str:
    """``mcp__<server>__<item>``; what is longer than a name may be keeps its head and ends in a hash of the whole."""
    name = f"mcp__{normalise(server)}__{normalise(item)}" if prefix else normalise(item)
    if len(name) <= MAX_NAME:
        return name
    digest = sha256(f"{server}\0{item}".encode("utf-8", "replace")).hexdigest()[:_HASH]
    return f"{name[:MAX_NAME - _HASH - 1]}_{digest}"


def plugin_server(plugin: str, server: str) -> str:
    """The registered name of a server that a plugin brings."""
    return f"plugin:{plugin}:{server}"
