"""From a path to what is checked: plugins, marketplaces, project folders, single files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from kernel_linter.bundle import MANIFEST, Plugin
from kernel_linter.catalogue import PLACE, Marketplace
from kernel_linter.hooks_model import HookMap
from kernel_linter.markdown import TextFile
from kernel_linter.servers import LspServer, McpServer, Monitor, mcp_map
from kernel_linter.source import File, JsonFile
from kernel_linter.tree import walk

Target = tuple[str, Any]


class Job(Struct):
    """One thing to check. ``only`` keeps the findings of one file."""

    kind: str
    thing: Any
    shown: str
    only: Path | None = None


class NothingFound(Exception):
    """The path holds nothing that can be checked."""


def jobs(path: Path) -> list[Job]:
    """What a path stands for. Raises ``FileNotFoundError`` and ``NothingFound``."""
    shown = named(path)
    if not os.path.lexists(path):
        raise FileNotFoundError(shown)
    return _folder(path, shown) if path.is_dir() else [_single(path, shown)]


def named(path: Path) -> str:
    """A path for messages: relative to the working directory where it lies inside."""
    if path.is_absolute():
        inside = os.path.relpath(path)
        return path.as_posix() if inside.startswith("..") else Path(inside).as_posix()
    return path.as_posix()


def _join(shown: str, rel: str) -> str:
    return rel if shown in ("", ".") else f"{shown}/{rel}" if rel else shown


def _folder(path: Path, shown: str) -> list[Job]:
    if (path / PLACE).exists():
        return [Job("marketplace", Marketplace(path, shown), shown)]
    if os.path.lexists(path / MANIFEST):
        return [Job("plugin", Plugin(path, shown), shown)]
    if path.name == ".claude":
        return [Job("project", path, shown)]
    if path.name in ("skills", "commands", "agents", "output-styles") and (found := _components(path, shown)):
        return found
    below = list(_below(path, shown))
    if below:
        return below
    if (path / "marketplace.json").is_file():
        file = JsonFile(path / "marketplace.json", _join(shown, "marketplace.json"))
        return [Job("marketplace", Marketplace(path, shown, file), shown)]
    if any((path / name).exists() for name in ("skills", "commands", "agents", "hooks/hooks.json", ".mcp.json", ".lsp.json",
                                               "SKILL.md")):
        return [Job("plugin", Plugin(path, shown), shown)]
    raise NothingFound(f"{shown}: no manifest found: expected {PLACE}, {MANIFEST}, or components such as skills/, agents/, "
                       f".mcp.json")


def _below(path: Path, shown: str) -> Iterator[Job]:
    """Every ``.claude-plugin`` and ``.claude`` below a folder, outermost first."""
    taken: list[str] = []
    tree = walk(path)
    for folder in sorted(tree.folders, key=lambda f: (f.count("/"), f)):
        parent, _, name = folder.rpartition("/")
        where, label = path / parent, _join(shown, parent)
        if name == ".claude" and not any(f"{parent}/".startswith(f"{t}/") for t in taken):
            yield Job("project", path / folder, _join(shown, folder))
        if name != ".claude-plugin" or any(f"{parent}/".startswith(f"{t}/") for t in taken):
            continue
        if f"{folder}/marketplace.json" in tree.files:
            taken.append(parent)
            yield Job("marketplace", Marketplace(where, label), label)
        elif f"{folder}/plugin.json" in tree.files:
            taken.append(parent)
            yield Job("plugin", Plugin(where, label), label)


def _components(path: Path, shown: str) -> list[Job]:
    """A folder of skills, commands, agents or output styles on its own; the plugin around it counts where there is one."""
    owner = path.parent
    if os.path.lexists(owner / MANIFEST):
        plugin = Plugin(owner, Path(shown).parent.as_posix())
        return [Job("plugin", plugin, shown, path)]
    if owner.name == ".claude":
        return [Job("project", owner, Path(shown).parent.as_posix(), path)]
    plugin = Plugin(owner, Path(shown).parent.as_posix())
    found = {"skills": plugin.skills, "commands": plugin.commands, "agents": plugin.agents,
             "output-styles": plugin.styles}[path.name]
    for text in found:
        text.plugin = None
        text.in_plugin = False
    return [Job("texts", found, shown)] if found else []


def _single(path: Path, shown: str) -> Job:
    """One file, by its name and place."""
    name, parent = path.name, path.parent.name
    if name == "marketplace.json":
        root = path.parent.parent if parent == ".claude-plugin" else path.parent
        return Job("marketplace", Marketplace(root, Path(shown).parent.parent.as_posix() if parent == ".claude-plugin" else
                                              Path(shown).parent.as_posix(), JsonFile(path, shown)), shown, path)
    owner = _owner(path)
    if owner is not None:
        up = len(path.absolute().parent.relative_to(owner.absolute()).parts)
        label = Path(shown).parent.as_posix()
        for _ in range(up):
            label = Path(label).parent.as_posix() if label not in (".", "") else ".."
        return Job("plugin", Plugin(owner, label if label != "." else ""), shown, path)
    if path.suffix.lower() == ".md":
        folders = {"agents": "agent", "commands": "command", "output-styles": "style", "skills": "skill"}
        kind = "skill" if name.lower() == "skill.md" else next(
            (folders[part] for part in reversed(path.absolute().parent.parts) if part in folders), "command")
        return Job("texts", [TextFile(path, shown, kind, in_plugin=False)], shown)
    return Job("json", JsonFile(path, shown), shown)


def _owner(path: Path) -> Path | None:
    """The plugin root above a file, when the file is one that the plugin would load."""
    try:
        here = path.absolute().parent
        for folder in (here, *here.parents[:6]):
            if os.path.lexists(folder / MANIFEST):
                rel = path.absolute().relative_to(folder).as_posix()
                plugin = Plugin(folder, "")
                loaded = [f.rel for f in plugin.texts + plugin.styles] + [MANIFEST]
                files = {os.path.abspath(f.path) for f in (*plugin.json_files, *plugin.themes)}
                return folder if rel in loaded or os.path.abspath(path) in files else None
    except (OSError, ValueError):
        return None
    return None


# -- what the rules get ------------------------------------------------------------------------------------------------
def targets(job: Job) -> Iterator[Target]:
    if job.kind == "marketplace":
        yield from of_marketplace(job.thing)
    elif job.kind == "plugin":
        yield from of_plugin(job.thing)
    elif job.kind == "project":
        yield from of_project(job.thing, job.shown)
    elif job.kind == "texts":
        for text in job.thing:
            yield from of_text(text)
    else:
        yield from of_json(job.thing)


def of_marketplace(market: Marketplace) -> Iterator[Target]:
    yield "file", market.file
    yield "json", market.file
    yield "marketplace", market
    for entry in market.entries:
        yield "entry", entry
    for plugin in market.plugins:
        yield from of_plugin(plugin)


def of_plugin(plugin: Plugin) -> Iterator[Target]:
    yield "plugin", plugin
    if plugin.manifest:
        yield "manifest", plugin.manifest
    seen: set[str] = set()
    for file in (*plugin.json_files, *plugin.hook_files, *plugin.mcp_files, *plugin.lsp_files, *plugin.monitor_files):
        if file.shown not in seen:
            seen.add(file.shown)
            yield "file", file
            yield "json", file
    for text in (*plugin.texts, *plugin.styles):
        yield from of_text(text, hooks=False)
    for kind, files in (("workflow", plugin.workflows), ("theme", plugin.themes)):
        for thing in files:
            yield kind, thing
    for file in plugin.hook_files:
        yield "hook-file", file
    for hooks in plugin.hooks:
        yield from of_hooks(hooks)
    yield from _each("mcp-file", plugin.mcp_files, "server", plugin.servers)
    yield from _each("lsp-file", plugin.lsp_files, "lsp", plugin.lsp)
    yield from _each("monitor-file", plugin.monitor_files, "monitor", plugin.monitors)


def _each(file_kind: str, files: list[JsonFile], kind: str, things: list[Any]) -> Iterator[Target]:
    yield from ((file_kind, f) for f in files)
    yield from ((kind, t) for t in things)


def of_text(text: TextFile, hooks: bool = True) -> Iterator[Target]:
    yield "file", text
    if text.problem:
        return
    if text.kind == "style":
        yield "style", text
        return
    yield "text", text
    yield text.kind, text
    if hooks and text.data.get("hooks") is not None:
        yield from of_hooks(HookMap(text, text.data["hooks"], "agent" if text.kind == "agent" else "skill", ("hooks",),
                                    text.plugin))


def of_hooks(hooks: HookMap) -> Iterator[Target]:
    yield "hooks", hooks
    for group in hooks.groups():
        yield "group", group
        for handler in group.handlers():
            yield "handler", handler


def of_project(folder: Path, shown: str) -> Iterator[Target]:
    """A ``.claude`` folder: settings, skills, commands, agents, and the ``.mcp.json`` beside it."""
    place = Plugin(folder, shown)
    for text in (*place.skills, *place.commands, *place.agents, *place.styles):
        text.plugin, text.in_plugin = None, False
        yield from of_text(text)
    for name in ("settings.json", "settings.local.json"):
        if (folder / name).is_file():
            yield from of_settings(JsonFile(folder / name, f"{shown}/{name}"))
    beside = folder.parent / ".mcp.json"
    if beside.is_file():
        yield from of_mcp(JsonFile(beside, Path(shown).parent.joinpath(".mcp.json").as_posix()))


def of_settings(file: JsonFile) -> Iterator[Target]:
    yield from (("file", file), ("json", file), ("settings", file))
    if "hooks" in file.object:
        yield from of_hooks(HookMap(file, file.object["hooks"], "settings", ("hooks",)))


def of_mcp(file: JsonFile) -> Iterator[Target]:
    yield from (("file", file), ("json", file), ("mcp-file", file))
    servers, base = mcp_map(file)
    for name, data in servers.items():
        yield "server", McpServer(name, data, file, (*base, name), None)


def of_json(file: JsonFile) -> Iterator[Target]:
    """A JSON file on its own: what it is follows from its name, else from its keys; the rest counts as a manifest."""
    name, data, parent = file.path.name, file.object, file.path.parent.name
    keys = set(data)
    if name.endswith(".mcp.json") or name in ("mcp.json", "mcp_servers.json") or (keys and keys <= {"mcpServers", "$schema"}):
        yield from of_mcp(file)
    elif name.startswith(("settings", "managed-settings")) or "permissions" in keys or "enabledPlugins" in keys:
        yield from of_settings(file)
    elif name == "hooks.json" or parent == "hooks" or (keys and keys <= {"hooks", "description", "$schema"}):
        yield from (("file", file), ("json", file), ("hook-file", file))
        if "hooks" in data:
            yield from of_hooks(HookMap(file, data["hooks"], "file", ("hooks",)))
    elif name.endswith(".lsp.json"):
        yield from (("file", file), ("json", file), ("lsp-file", file))
        for key, value in data.items():
            yield "lsp", LspServer(key, value, file, (key,), None)
    elif name == "monitors.json" or (isinstance(file.data, list) and "monitor" in name):
        yield from (("file", file), ("json", file), ("monitor-file", file))
        for index, value in enumerate(file.data if isinstance(file.data, list) else []):
            if isinstance(value, dict):
                yield "monitor", Monitor(str(value.get("name", index)), value, file, (index,), None)
    elif parent == "themes":
        yield from (("file", file), ("json", file), ("theme", file))
    elif "plugins" in keys and "owner" in keys:
        yield from of_marketplace(Marketplace(file.path.parent, "", file))
    else:
        yield from (("file", File(file.path, file.shown)), ("json", file), ("manifest", file))
