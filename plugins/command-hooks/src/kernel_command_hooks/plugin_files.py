"""Hooks that plugins bring: the default file, files named in the manifest, inline objects (hooks contract, 2 and 2.1)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kernel_command_hooks.handlers import Home

if TYPE_CHECKING:
    from kernel import Plugin, Session

DEFAULT = "hooks/hooks.json"


class Found:
    """Event maps of one plugin, each with the place it stands at; ``faults`` and ``remarks`` are for people."""

    def __init__(self) -> None:
        self.maps: list[tuple[str, dict[str, Any]]] = []
        self.faults: list[str] = []
        self.remarks: list[str] = []


def find(plugin: Plugin) -> Found:
    """Everything the plugin's folder holds. Never raises: a file that cannot be used is named."""
    found = Found()
    seen: set[Path] = set()
    default = plugin.root / DEFAULT
    if default.exists():
        seen.add(default.resolve())
        _file(default, found)
    declared: Any = plugin.manifest.hooks if plugin.manifest else None
    place = plugin.root / ".claude-plugin" / "plugin.json"
    for entry in declared if isinstance(declared, list) else [] if declared is None else [declared]:
        if isinstance(entry, dict):
            _map(entry.get("hooks", entry), str(place), found)
            continue
        try:
            path = _inside(plugin.root, entry)
        except ValueError as error:
            found.faults.append(f"{place}, hooks: {error}")
            continue
        if path in seen:
            found.remarks.append(f"{place}, hooks: {entry} is read once; {DEFAULT} need not be named")
            continue
        seen.add(path)
        _file(path, found)
    return found


def _inside(root: Path, text: str) -> Path:
    """The resolved path of a file named in the manifest.

    :raises ValueError: it does not start with ``./``, or it leaves the plugin's folder.
    """
    if not text.startswith("./"):
        raise ValueError(f"{text!r} must start with './' and lie in the plugin's folder")
    path = (root / text).resolve()
    if not path.is_relative_to(root.resolve()):
        raise ValueError(f"{text!r} leads out of the plugin's folder")
    return path


def _file(path: Path, found: Found) -> None:
    try:
        data = msgspec.json.decode(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except OSError as error:
        found.faults.append(f"{path}: cannot be read ({error.strerror}), so its hooks do not run")
        return
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        found.faults.append(f"{path}: is not valid JSON ({error}), so its hooks do not run")
        return
    if isinstance(data, dict) and "hooks" in data:
        _map(data["hooks"], str(path), found)
    elif not data:
        found.remarks.append(f"{path}: must hold an object with 'hooks'; it is empty and brings no hooks")
    else:
        found.faults.append(f"{path}: must hold an object with an object 'hooks', so its hooks do not run")


def _map(value: Any, where: str, found: Found) -> None:
    if isinstance(value, dict):
        found.maps.append((where, value))
    else:
        found.faults.append(f"{where}, hooks: must be an object of event names, so its hooks do not run")


def home(plugin: Plugin, session: Session) -> Home:
    """The plugin's folders and its user configuration (plugins contract, 4.8 and 5)."""
    config = session.settings.config_dir
    data = config / "plugins" / "data" / re.sub(r"[^A-Za-z0-9_-]", "-", plugin.id)
    return Home(id=plugin.id, root=str(plugin.root), data=str(data), options=_options(plugin, session))


def _options(plugin: Plugin, session: Session) -> dict[str, Any]:
    """Values of ``pluginConfigs`` over the manifest's defaults. Project files do not count: they could redirect a secret."""
    options: dict[str, Any] = {}
    for key, option in ((plugin.manifest.user_config if plugin.manifest else None) or {}).items():
        if isinstance(option, dict) and option.get("default") is not None:
            options[key] = option["default"]
    for layer, configs in reversed(session.settings.by_layer("pluginConfigs")):
        if layer.scope not in ("managed", "cli", "user") or not isinstance(configs, dict):
            continue
        for name in (plugin.name, plugin.id):
            entry = configs.get(name)
            given = entry.get("options") if isinstance(entry, dict) else None
            if isinstance(given, dict):
                options |= {k: v for k, v in given.items() if v is not None}
    return options
