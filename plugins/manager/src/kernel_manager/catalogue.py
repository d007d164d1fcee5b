"""``marketplace.json`` as typed data: read, checked, searched (plugins contract, section 6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct, field

from kernel_manager.describe import read_json
from kernel_manager.errors import ManagerError
from kernel_manager.names import check_marketplace_name, shown
from kernel_manager.sources import Source, from_entry

PLACE = Path(".claude-plugin") / "marketplace.json"
MAX_BYTES, MAX_PLUGINS = 8 << 20, 5000


class Marketplace(Struct, kw_only=True):
    """A catalogue. ``root`` is what relative sources are relative to; ``None``: there is only the JSON."""

    name: str
    root: Path | None
    entries: dict[str, dict[str, Any]]
    renames: dict[str, str | None] = field(default_factory=dict)
    cross: list[str] = field(default_factory=list)
    plugin_root: str | None = None
    description: str | None = None
    warnings: list[str] = field(default_factory=list)

    def entry(self, name: str) -> dict[str, Any]:
        """The entry of that name, without regard to case; renames are followed.

        :raises ManagerError: ``not-found``, with what is near.
        """
        wanted: str | None = name
        for _ in range(len(self.renames) + 1):
            if wanted in self.renames:
                wanted = self.renames[wanted]
        if wanted is None:
            raise ManagerError("not-found", f"the plugin {name!r} was removed from the marketplace {self.name!r}")
        folded = {key.lower(): value for key, value in self.entries.items()}
        found = self.entries.get(wanted) or folded.get(wanted.lower())
        if found is None:
            from difflib import get_close_matches

            near = get_close_matches(wanted.lower(), folded, n=1)
            raise ManagerError("not-found", f"the marketplace {self.name!r} has no plugin {shown(name)}",
                               hint=f"did you mean {near[0]!r}?" if near else f"kernel plugins search --marketplace {self.name}")
        return found

    def source(self, entry: dict[str, Any]) -> Source:
        """:raises ManagerError: as ``from_entry``; or the catalogue alone cannot resolve a relative path."""
        found = from_entry(entry.get("source"), plugin_root=self.plugin_root)
        if found.kind == "folder" and self.root is None:
            raise ManagerError("not-found", "its source is a folder of its marketplace, of which only the catalogue is here",
                               context=f"plugin {entry.get('name')}@{self.name}")
        return found


def read(place: Path, *, owner: str | None) -> Marketplace:
    """Read a catalogue.

    :param place: a folder that holds ``.claude-plugin/marketplace.json``, or the file.
    :param owner: the GitHub owner that it comes from, for reserved names.
    :raises ManagerError: ``bad-marketplace``, ``bad-name``, ``reserved-name``, ``not-found``.
    """
    file = place / PLACE if place.is_dir() else place
    if not file.is_file():
        raise ManagerError("not-found", f"there is no {PLACE} in {place}")
    if file.stat().st_size > MAX_BYTES:
        raise ManagerError("bad-marketplace", f"is over {MAX_BYTES >> 20} MiB", context=str(file))
    root = file.parent.parent if file.parent.name == ".claude-plugin" else file.parent
    return parse(read_json(file), root, owner=owner)


def parse(data: Any, root: Path | None, *, owner: str | None) -> Marketplace:
    """:raises ManagerError: as ``read``."""
    if not isinstance(data, dict):
        raise _bad("must hold one JSON object")
    name = check_marketplace_name(data.get("name"), owner)
    plugins = data.get("plugins")
    if not isinstance(data.get("owner"), dict) or not isinstance(data["owner"].get("name"), str) or not data["owner"]["name"]:
        raise _bad("owner: must be an object with a name", name)
    if not isinstance(plugins, list):
        raise _bad("plugins: must be a list", name)
    if len(plugins) > MAX_PLUGINS:
        raise _bad(f"plugins: over {MAX_PLUGINS} entries", name)
    metadata = data.get("metadata") if isinstance(data.get("metadata"), dict) else {}
    assert metadata is not None
    found = Marketplace(name=name, root=root, entries={}, description=data.get("description") or metadata.get("description"))
    if isinstance(metadata.get("pluginRoot"), str):
        found.plugin_root = metadata["pluginRoot"].rstrip("/")
    renames = data.get("renames")
    if isinstance(renames, dict):
        found.renames = {str(k): v for k, v in renames.items() if v is None or isinstance(v, str)}
    cross = data.get("allowCrossMarketplaceDependenciesOn")
    found.cross = [c for c in cross if isinstance(c, str)] if isinstance(cross, list) else []
    for number, entry in enumerate(plugins):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"] or "source" not in entry:
            found.warnings.append(f"plugins[{number}]: must be an object with a name and a source; left out")
        elif entry["name"] in found.entries:
            raise _bad(f"plugins[{number}]: the name {shown(entry['name'])} stands twice", name)
        else:
            found.entries[entry["name"]] = entry
    return found


def _bad(message: str, name: str = "") -> ManagerError:
    return ManagerError("bad-marketplace", message, context=f"marketplace {name}" if name else str(PLACE))
