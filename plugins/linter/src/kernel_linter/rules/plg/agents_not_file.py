"""An `agents` entry is a directory or not a `.md` file. Fix: list the files, or drop the key when it is the default folder.

Why: The plugin does not install ("agents: invalid input"). The most reported manifest fault in public trackers.

Bad:

    {"agents": "./agents/"}

Good:

    {"agents": ["./agents/reviewer.md"]}
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "PLG026"
SEVERITY = "error"
FIX = "safe"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for ref in plugin.paths("agents"):
        if not ref.sound:
            continue
        if plugin.is_dir(ref.rel):
            files = [f"./{rel}" for rel in plugin.markdown_under(ref.rel)]
            alone = len(plugin.paths("agents")) == 1
            message = "drop the key, the folder is the default" if alone and ref.rel == "agents" else "list the files"
            fix = (
                ref.file.drop(*ref.pointer[:1], message=message)
                if alone and ref.rel == "agents" and len(ref.pointer) < 3
                else ref.file.set_value(files, *ref.pointer, message=message)
                if files and not isinstance(ref.pointer[-1], int)
                else ref.file.put(", ".join(map(json.dumps, files)), *ref.pointer, message=message)
                if files
                else None
            )
            yield ref.at(f"agents: Invalid input: {shown(ref.value)} is a folder; every entry must be a .md file", fix=fix)
        elif not ref.value.lower().endswith(".md"):
            yield ref.at(f"agents: Invalid input: {shown(ref.value)} is no .md file")
