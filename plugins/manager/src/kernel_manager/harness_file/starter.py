"""``kernel harness init``: a commented starter file from what is installed now."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kernel_manager.wheels import plugin_entries

HEAD = """\
# What this harness is made of. `kernel harness lock` turns it into exact versions and digests (kernel.lock, to be
# committed beside this file), `kernel harness sync` puts those in place, and `kernel --harness {file} -p ...` runs them.
# All fields: kernel harness schema.
harness: 1
name: {name}

# One line a plugin: a Python requirement, ./folder, name@marketplace, owner/repo, or a mapping (path:, git: with ref: and
# folder:, entry:, source:). What plugins need comes along.
plugins:{plugins}

# Settings of every run: below --settings, above the settings files of project and user.
settings: {{}}
#  model: sonnet
#  permissions:
#    deny: ["Read(./.env)"]

# Plugins whose hooks come first, in this order; the others follow by name.
order: []

# Plugins that stay out although something brings them.
block: []
"""


def starter(path: Path) -> str:
    """The text of a starter file for ``path``."""
    rows = [f"\n  - {line}" for line in installed(path.parent)]
    name = json.dumps(path.absolute().parent.name or "harness", ensure_ascii=False)
    return HEAD.format(file=path.name, name=name, plugins="".join(rows) if rows else " []")


def installed(base: Path) -> list[str]:
    """A line for each installed distribution with plugins: its requirement, or the folder of an editable one."""
    from importlib import metadata

    lines: dict[str, str] = {}
    for found in metadata.distributions():
        entries = [name for name, _ in plugin_entries(found.read_text("entry_points.txt") or "")]
        name = found.metadata["Name"]
        if entries and name and name.lower() not in lines:
            folder = _editable(found.read_text("direct_url.json"))
            if folder is not None:
                spec = os.path.relpath(folder, base)
                spec = spec if spec.startswith("..") else f"./{spec}"
                lines[name.lower()] = f"path: {json.dumps(spec.replace(os.sep, '/'), ensure_ascii=False)}  # {', '.join(entries)}"
            else:
                lines[name.lower()] = f"{name}>={found.version}  # {', '.join(entries)}"
    return [lines[name] for name in sorted(lines)]


def _editable(raw: str | None) -> Path | None:
    try:
        data = json.loads(raw or "{}")
        return Path(unquote(urlsplit(data["url"]).path)) if data["dir_info"]["editable"] else None
    except (ValueError, KeyError, TypeError):
        return None
