"""`SKILL.md` two or more levels below `skills/` that no `skills` entry covers.

Why: Not discovered.

Bad:

    skills/db/sql/SKILL.md

Good:

    "skills": ["./skills/db/"]
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic, Fix
from kernel_linter.texts import skipped

CODE = "SKL051"
SEVERITY = "error"
FIX = "unsafe"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    covered = {s.rel for s in plugin.skills}
    for rel in plugin.tree.files:
        if (
            not rel.endswith("/SKILL.md")
            or not rel.startswith("skills/")
            or rel.count("/") <= 2
            or rel in covered
            or skipped(rel)
        ):
            continue
        parent = rel.removesuffix("/SKILL.md").rpartition("/")[0]
        yield plugin.file(rel).at(
            f"{rel}: lies too deep to be discovered; name './{parent}/' under skills in the manifest",
            fix=name_it(plugin, f"./{parent}/"),
        )


def name_it(plugin: Plugin, path: str) -> Fix | None:
    """Name the folder under ``skills``."""
    manifest, value = plugin.manifest, plugin.data.get("skills")
    if not manifest:
        return None
    message = f"name {path} under skills"
    if value is None:
        return manifest.add_member("skills", [path], message=message, kind="unsafe")
    return manifest.set_value([*([value] if isinstance(value, str) else value), path], "skills", message=message, kind="unsafe")
