"""Questions about manifests that several rules ask."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile, Pointer

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_OPTION = re.compile(r"CLAUDE_PLUGIN_OPTION_([A-Za-z0-9_]+)")


def broken(plugin: Plugin) -> bool:
    """Whether there is nothing to say about fields: no manifest and no entry, or a manifest that does not parse."""
    return (plugin.manifest is None and not plugin.entries) or (plugin.manifest is not None
                                                                and not isinstance(plugin.manifest.data, dict))


def unstated(plugin: Plugin, key: str) -> bool:
    """Whether neither the manifest nor an entry of the catalogue states a field."""
    return not broken(plugin) and all(data.get(key) is None for _, _, data in plugin.sources())


def unsafe_name(name: str) -> str:
    """Why a name cannot be part of ids and paths; empty if it can."""
    if found := re.search(r"[/\\:@]|\.\.", name):
        return f"contains {found[0]!r}: the name becomes part of ids, command names and paths"
    if _CONTROL.search(name):
        return "contains a control character"
    return f"starts with {name[0]!r}" if name[:1] in ("-", ".") else ""


def number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def uses(plugin: Plugin) -> Iterator[tuple[str, str, Callable[[str], Diagnostic]]]:
    """Texts that may hold ``${user_config.*}``: what kind, the text, and how to speak about it."""
    for server in (*plugin.servers, *plugin.lsp, *plugin.monitors):
        for pointer, value in server.texts():
            yield "config", value, lambda m, s=server, p=pointer: s.at(m, *p)  # type: ignore[misc]
    for hooks in plugin.hooks:
        for handler in hooks.handlers():
            yield "config", handler.words + " ".join(map(str, (handler.data.get("headers") or {},
                                                               handler.data.get("url") or ""))), \
                lambda m, h=handler: h.at(m)  # type: ignore[misc]
    for text in plugin.texts:
        if "${user_config." in text.text:
            yield "text", text.masked if not plugin.options else text.text, lambda m, t=text: t.at(m,
                span=_first(t.text))  # type: ignore[misc]


def _first(text: str) -> tuple[int, int]:
    at = text.find("${user_config.")
    return at, text.find("}", at) + 1


def in_scripts(plugin: Plugin) -> set[str]:
    """Options that some file reads from the environment. Files above 200,000 bytes are not looked at."""
    found: set[str] = set()
    keys = {k.upper(): k for k in plugin.options}
    total = 0
    for rel, entry in list(plugin.tree.files.items())[:2000]:
        try:
            size = entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
        total += size
        if size > 200_000 or total > 5_000_000 or rel.endswith((".png", ".jpg", ".gif", ".zip", ".gz", ".woff2", ".pdf")):
            continue
        text = plugin.file(rel).text
        if "CLAUDE_PLUGIN_OPTION_" in text:
            found |= {keys[m.upper()] for m in _OPTION.findall(text) if m.upper() in keys}
    return found


def dependency_places(plugin: Plugin) -> Iterator[tuple[JsonFile, tuple[Pointer, ...], int, str]]:
    """File, pointer, index and name of every dependency inside the same marketplace."""
    for file, pointer, value in plugin.declared("dependencies"):
        for index, item in enumerate(value if isinstance(value, list) else ()):
            name = item.get("name") if isinstance(item, dict) else item
            if isinstance(name, str) and "@" not in name and not (isinstance(item, dict) and item.get("marketplace")):
                yield file, pointer, index, name


def dependency_names(plugin: Plugin) -> list[str]:
    return [name for _, _, _, name in dependency_places(plugin)]


def cycle(graph: dict[str, list[str]], start: str, first: str) -> list[str]:
    """A way from ``start`` over ``first`` back to ``start``."""
    pending, seen = [[start, first]], {first}
    while pending:
        way = pending.pop()
        for after in graph.get(way[-1], ()):
            if after == start:
                return [*way, start]
            if after not in seen:
                seen.add(after)
                pending.append([*way, after])
    return []


def other_case(plugin: Plugin, rel: str) -> str:
    """The real spelling of a path that differs by letter case; empty if it is right or not there."""
    real: list[str] = []
    for part in rel.split("/") if rel else ():
        names = plugin.names("/".join(real))
        if part in names:
            real.append(part)
            continue
        same = [n for n in names if n.lower() == part.lower()]
        if len(same) != 1:
            return ""
        real.append(same[0])
    found = "/".join(real)
    return found if found != rel else ""


def outside(rel: str, link: str) -> bool:
    """Whether a link in the file ``rel`` leads above the plugin root."""
    return bool(link) and os.path.normpath(os.path.join(os.path.dirname(rel), link)).replace("\\", "/").startswith("../")
