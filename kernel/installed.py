"""Installed plugins that settings switch on (plugins contract, 9 and 10): read from one state file, listed before any of
their code is imported. Who installs, updates and removes them is a plugin's affair; this only reads what it left.

``<config dir>/kernel/plugins/state.json`` comes first, then the public ``~/.claude/plugins/installed_plugins.json``, which
has the same form. Paths in them may be relative to their folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from kernel.plugins import Plugin
from kernel.settings import Problem, Settings, config_dir, git_root

NOT_INSTALLED = frozenset(("inline", "builtin", "skills-dir", "synced"))
"""Sources whose plugins come from elsewhere; an entry for one of them asks for nothing here."""


def state_file() -> Path:
    return config_dir() / "kernel" / "plugins" / "state.json"


def public_file() -> Path:
    given = os.environ.get("CLAUDE_CODE_PLUGIN_CACHE_DIR")
    return (Path(given) if given else config_dir() / "plugins") / "installed_plugins.json"


def here() -> list[Plugin]:
    """The enabled ones for a command that is typed in the working directory; settings are only read where there are any."""
    if not state_file().exists() and not public_file().exists():
        return []
    return enabled(Settings.load(Path.cwd()))


def enabled(settings: Settings) -> list[Plugin]:
    """One plugin for every id that settings switch on and that was installed for the user or for this project.

    What a project says counts only where it is trusted. What is missing is added to ``settings.problems``.
    """
    wanted = _wanted(settings)
    if not wanted:
        return []
    places = [(file.parent, _records(file, settings)) for file in (state_file(), public_file())]
    projects = {str(settings.project_root), str(git_root(settings.project_root) or settings.project_root)}
    found: list[Plugin] = []
    for id, source in sorted(wanted.items()):
        record = next(((base, r) for base, records in places if (r := _of_project(records.get(id), projects))), None)
        if record is None:
            settings.problems.append(Problem(source, f"enabledPlugins.{id}",
                                             f"is not installed here: kernel plugins install {id}"))
            continue
        base, values = record
        path = values.get("path")
        found.append(Plugin.at(
            base / str(values.get("installPath")), "installed", key=id, version=str(values.get("version") or ""),
            module=values.get("module") if isinstance(values.get("module"), str) else None,
            path=[str(base / p) for p in path if isinstance(p, str)] if isinstance(path, list) else []))
    return found


def _wanted(settings: Settings) -> dict[str, str]:
    """Id -> settings file of everything that is switched on; the highest scope that counts decides."""
    decided: dict[str, tuple[bool, str]] = {}
    for layer, value in settings.by_layer("enabledPlugins"):
        if not isinstance(value, dict):
            settings.problems.append(Problem(layer.path, "enabledPlugins", "must be an object of plugin ids"))
        elif layer.scope in ("project", "local") and not settings.trusted:
            if value:
                settings.problems.append(Problem(layer.path, "enabledPlugins", "ignored: this workspace has not been trusted"))
        else:
            for id, on in value.items():
                decided.setdefault(id, (on is True, layer.path))
    return {id: path for id, (on, path) in decided.items() if on and id.rpartition("@")[2] not in NOT_INSTALLED}


def _records(file: Path, settings: Settings) -> dict[str, Any]:
    try:
        plugins = msgspec.json.decode(file.read_bytes())["plugins"]
        return plugins if isinstance(plugins, dict) else {}
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, UnicodeError, LookupError, TypeError) as error:
        settings.problems.append(Problem(str(file), "plugins", f"no installed plugin is loaded: {error}; kernel plugins rollback "
                                         "takes the state before it"))
        return {}


def _of_project(records: Any, projects: set[str]) -> dict[str, Any] | None:
    """The record that counts here: the project's own before the user's."""
    fitting = [r for r in (records if isinstance(records, list) else []) if isinstance(r, dict)
               and isinstance(r.get("installPath"), str)
               and (r.get("scope") in ("user", "managed") or r.get("projectPath") in projects)]
    return min(fitting, key=lambda r: r.get("scope") in ("user", "managed"), default=None)
