"""`commands`, `agents`, `workflows` or `outputStyles` is set and the default folder holds files the key does not cover. Fix: add
the folder.

Why: Those files never load.

Bad:

    {"commands": "./extra/"}  with commands/deploy.md

Good:

    {"commands": ["./commands/", "./extra/"]}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import DEFAULT_PLACES, REPLACING

CODE = "PLG029"
SEVERITY = "warning"
FIX = "unsafe"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    for key in REPLACING:
        declared = plugin.declared(key)
        folder = DEFAULT_PLACES[key]
        if not declared or not plugin.is_dir(folder):
            continue
        suffix = (".js", ".mjs") if key == "workflows" else ".md"
        rels = (
            plugin.markdown_under(folder)
            if suffix == ".md"
            else [f"{folder}/{n}" for n in plugin.names(folder) if n.endswith(suffix)]
        )
        refs = [r.rel for r in plugin.paths(key) if r.sound]
        lost = [rel for rel in rels if not any(r in ("", rel) or rel.startswith(f"{r}/") for r in refs)]
        if lost:
            file, pointer, value = declared[0]
            values = [value] if isinstance(value, str) else value
            fix = (
                file.set_value([f"./{folder}/", *values], *pointer, message=f"name ./{folder}/ too", kind="unsafe")
                if isinstance(values, list) and key != "agents"
                else None
            )
            yield file.at(
                f"{key}: replaces the default folder: {len(lost)} file(s) in {folder}/ never load, {lost[0]} among them",
                *pointer,
                fix=fix,
            )
