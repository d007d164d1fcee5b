"""What is there: installed plugins, marketplaces, what they offer, what is out of date. Nothing of a plugin runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel import Harness, KernelError, Options, Plugin, ensure_usable
from kernel_manager.describe import describe
from kernel_manager.errors import ManagerError
from kernel_manager.markets import Markets
from kernel_manager.scopes import Scopes
from kernel_manager.state import Home, Record, State


def rows(plugin_dirs: list[Path], block: list[str], *, check: bool = False) -> list[dict[str, Any]]:
    """Every plugin that the kernel finds, and every installed one that is switched off (contract, 13).

    :param check: import the modules of those that are ready, and compare them with their manifests.
    """
    home = Home()
    home.recover()
    scopes = Scopes.here()
    state = home.read()
    harness = Harness(Options(plugin_dirs=plugin_dirs, block=block), settings=scopes.settings)
    if check:
        _load(harness)
    found = [_row(plugin, _record(state, plugin.id, scopes), scopes) for plugin in harness.plugins]
    listed = {row["id"] for row in found}
    for id in state.plugins:
        record = state.find(id, scopes.projects)
        if record is not None and id not in listed and scopes.managed(id) is not False:
            plugin = Plugin.at(home.root / record.install_path, "installed", key=id, version=record.version)
            found.append({**_row(plugin, record, scopes), "state": "disabled" if plugin.state == "ready" else plugin.state})
    return sorted(found, key=lambda row: (row["name"], row["id"]))


def _load(harness: Harness) -> None:
    for plugin in harness.plugins.ready:
        try:
            ensure_usable(plugin)
        except KernelError:
            pass  # it is broken now, and its row says why


def of_environment(name: str) -> Plugin | None:
    """The plugin of that name that pip installed."""
    return next((p for p in Harness(Options()).plugins if p.name == name and p.source == "distribution"), None)


def _record(state: State, id: str, scopes: Scopes) -> Record | None:
    return state.find(id, scopes.projects)


def _row(plugin: Plugin, record: Record | None, scopes: Scopes) -> dict[str, Any]:
    return {
        **plugin.row(), "id": plugin.id, "marketplace": plugin.id.rpartition("@")[2],
        "scope": record.scope if record else None, "enabled": plugin.state == "ready" and (
            record is None or scopes.enabled(plugin.id)[0] is True),
        "installPath": str(plugin.root), "installedAt": record.installed_at if record else None,
        "lastUpdated": record.last_updated if record else None, "projectPath": record.project_path if record else None,
        "digest": record.digest if record else None, "auto": record.auto if record else False,
        "problems": [*({"type": "plugin-broken", "message": text} for text in plugin.errors), *_component_problems(plugin)]}


def _component_problems(plugin: Plugin) -> list[dict[str, str]]:
    """What of an installed plugin's files cannot be used; the rest of it works (contract, 12)."""
    if plugin.source != "installed" or plugin.manifest is None:
        return []
    try:
        found = describe(plugin.root, hashed=False)
    except (ManagerError, OSError) as error:
        return [{"type": "component-failed", "message": str(error)}]
    return [{"type": "component-failed", "message": text} for text in found.errors]


def marketplaces() -> list[dict[str, Any]]:
    """Every marketplace that is known, with its source (contract, 13)."""
    home = Home()
    home.recover()
    scopes = Scopes.here()
    markets = Markets(home, scopes, home.read())
    found: list[dict[str, Any]] = []
    for name, known in sorted(markets.known().items()):
        source = markets.source(name)
        row: dict[str, Any] = {"name": name, "source": source.get("source")}
        row["installLocation"] = str(home.root / known.install_location) if known else None
        row |= {key: source[key] for key in ("repo", "url", "path", "ref") if source.get(key)}
        row["lastUpdated"] = known.last_updated if known else None
        try:
            row["plugins"] = len(markets.open(name).entries) if known else None
        except (ManagerError, OSError) as error:
            row["error"] = str(error)
        found.append(row)
    return found


def search(text: str, marketplace: str | None) -> list[dict[str, Any]]:
    """Plugins of the known marketplaces whose name, description, keywords or category hold all the words."""
    home = Home()
    home.recover()
    scopes = Scopes.here()
    markets = Markets(home, scopes, home.read())
    if marketplace is not None and marketplace not in markets.known():
        raise ManagerError("not-found", f"the marketplace {marketplace!r} is not known", hint="kernel plugins marketplace list")
    words = text.lower().split()
    found: list[dict[str, Any]] = []
    for name, known in sorted(markets.known().items()):
        if (marketplace is not None and name != marketplace) or known is None:
            continue
        try:
            opened = markets.open(name)
        except (ManagerError, OSError):
            if marketplace is not None:
                raise
            continue
        for entry in opened.entries.values():
            told = " ".join(str(entry.get(k, "")) for k in ("name", "description", "keywords", "tags", "category")).lower()
            id = f"{entry['name']}@{name}"
            if all(word in told for word in words) and scopes.managed(id) is not False:
                found.append({"pluginId": id, "name": entry["name"], "marketplace": name, "description": entry.get("description"),
                              "version": entry.get("version"), "source": entry.get("source"),
                              "installed": markets.state.find(id, scopes.projects) is not None})
    return found
