"""Installed distributions that bring plugins, read from the files that pip leaves (decision 7). Imports next to nothing."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

GROUP = "kernel.plugins"
_SECTION = b"[kernel.plugins]"


class Found(NamedTuple):
    """One entry point: its name and module, the distribution with its version, and the plugin folder."""

    name: str
    module: str
    distribution: str
    version: str
    root: str


def scan(path: Iterable[str]) -> Iterator[Found]:
    """Every entry point of the group in the folders of an import path; the first distribution of a name counts."""
    seen: set[str] = set()
    for entry in path:
        folder = entry or "."
        try:
            names = sorted(n for n in os.listdir(folder) if n.endswith(".dist-info") and n not in seen)
        except OSError:
            continue
        for info in names:
            try:
                with open(os.path.join(folder, info, "entry_points.txt"), "rb") as file:
                    raw = file.read()
            except OSError:
                continue
            if _SECTION not in raw:
                continue
            seen.add(info)
            text = raw.decode("utf-8", "replace")
            section = text.split(f"[{GROUP}]", 1)[1].split("\n[", 1)[0]
            name_version = info.removesuffix(".dist-info").rsplit("-", 1)
            for name, module in re.findall(r"^\s*([^=#\s]+)\s*=\s*(\S+)", section, re.MULTILINE):
                yield Found(name, module.split(":")[0], name_version[0].replace("_", "-"), name_version[-1],
                            _root(folder, info, module))


def _root(folder: str, info: str, module: str) -> str:
    """The plugin folder of a distribution: its project folder when editable, else its package folder."""
    try:
        with open(os.path.join(folder, info, "direct_url.json"), "rb") as file:
            direct = json.loads(file.read())
        if direct.get("dir_info", {}).get("editable"):
            from urllib.parse import unquote, urlsplit

            return unquote(urlsplit(direct["url"]).path)
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        pass
    return os.path.join(folder, module.split(":")[0].split(".")[0])


def commands(path: Iterable[str]) -> dict[str, str]:
    """Name -> plugin of the commands that distributions bring, by their manifests; one that cannot be read brings none."""
    found: dict[str, str] = {}
    for entry in scan(path):
        try:
            with open(os.path.join(entry.root, ".claude-plugin", "plugin.json"), "rb") as file:
                names = json.loads(file.read())["metadata"]["kernel"]["provides"]["commands"]
            found |= {name: entry.name for name in names if isinstance(name, str)}
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return found
