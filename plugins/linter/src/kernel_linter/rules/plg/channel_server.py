"""`channels[].server` is not a key of the plugin's MCP servers, or an unknown key is used.

Why: The channel never registers.

Bad:

    {"channels": [{"server": "telegran"}]}

Good:

    {"channels": [{"server": "telegram"}]}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.tables import CHANNEL
from kernel_linter.words import shown

CODE = "PLG044"
SEVERITY = "error"
FIX = "none"
ON = "manifest entry"
SINCE = "0.1.0"


def check(target: JsonFile | Entry) -> Iterator[Diagnostic]:
    channels = target.object.get("channels")
    plugin = target.plugin
    for index, channel in enumerate(channels if isinstance(channels, list) else ()):
        if not isinstance(channel, dict):
            yield target.at("channels: every channel must be an object", "channels", index)
            continue
        for key in channel:
            if key not in CHANNEL:
                yield target.at(f"channels: unknown key {shown(key)}; the schema is closed", "channels", index, key)
        server = channel.get("server")
        if not isinstance(server, str) or not server:
            yield target.at("channels: server is required: the key of an MCP server", "channels", index)
        elif plugin and server not in plugin.server_names:
            yield target.at(f"channels: {shown(server)} is no MCP server of this plugin", "channels", index, "server")
