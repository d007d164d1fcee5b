"""A feature needs a host newer than `--target` (for example `metadata` 2.1.222, `"."` 2.1.221, `archive` 2.1.224, `command`
source 2.1.229, `defaultEnabled` 2.1.154, LSP `restartOnCrash` 2.1.205, event `DirectoryAdded` > 2.1.197).

Why: Older hosts ignore it, skip the server, or refuse the plugin.

Bad:

    {"skills": ["."]}

Good:

    {"skills": ["./"]}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic

CODE = "PLG048"
SEVERITY = "info"
FIX = "none"
ON = "plugin entry"
SINCE = "0.1.0"

NEEDS = {"metadata": "2.1.222", "defaultEnabled": "2.1.154"}


def check(target: Plugin | Entry) -> Iterator[Diagnostic]:
    data = target.data
    for key, host in NEEDS.items():
        if key in data:
            yield (target.at if isinstance(target, Entry) else target.head.at)(
                f"{key}: needs host {host} or newer", key, host=host
            )
    if isinstance(target, Entry):
        host = {"archive": "2.1.224", "command": "2.1.229"}.get(target.kind, "")
        if host:
            yield target.at(f"source: the kind {target.kind!r} needs host {host} or newer", "source", host=host)
        return
    for ref in target.paths("skills"):
        if ref.value == ".":
            yield ref.at("skills: '.' needs host 2.1.221 or newer; './' works everywhere", host="2.1.221")
    for server in target.lsp:
        for key in ("restartOnCrash", "shutdownTimeout"):
            if key in server.data:
                yield server.at(f"{key} needs host 2.1.205 or newer; older ones skip the server", key, host="2.1.205")
    for hooks in target.hooks:
        for event, _ in hooks.events:
            if event == "DirectoryAdded":
                yield hooks.at("the event DirectoryAdded needs a host newer than 2.1.197", event, host="2.1.198")
