"""A marketplace: its catalogue file, its entries, and the plugins that lie in the same folder."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import Any

from kernel_linter.bundle import MANIFEST, Plugin
from kernel_linter.rule import Diagnostic, Fix, FixClass
from kernel_linter.source import JsonFile, Pointer
from kernel_linter.tree import Tree, walk, within

PLACE = ".claude-plugin/marketplace.json"


class Entry:
    """One entry of ``plugins``."""

    def __init__(self, marketplace: Marketplace, index: int, data: dict[str, Any]) -> None:
        self.marketplace, self.index, self.data, self.file = marketplace, index, data, marketplace.file

    def at(self, message: str, *pointer: Pointer, **more: Any) -> Diagnostic:
        return self.file.at(message, "plugins", self.index, *pointer, **more)

    @property
    def object(self) -> dict[str, Any]:
        return self.data

    @property
    def plugin(self) -> Plugin | None:
        """The plugin of a local source that is there."""
        return self.marketplace.plugin_of.get(self.index)

    def set_value(self, value: Any, *pointer: Pointer, message: str, kind: FixClass = "safe") -> Fix | None:
        return self.file.set_value(value, "plugins", self.index, *pointer, message=message, kind=kind)

    def rename_key(self, new: str, *pointer: Pointer, message: str, kind: FixClass = "safe") -> Fix | None:
        return self.file.rename_key(new, "plugins", self.index, *pointer, message=message, kind=kind)

    def drop(self, *pointer: Pointer, message: str, kind: FixClass = "safe") -> Fix | None:
        return self.file.drop("plugins", self.index, *pointer, message=message, kind=kind)

    def add_member(self, key: str, value: Any, *pointer: Pointer, message: str, kind: FixClass = "safe") -> Fix | None:
        return self.file.add_member(key, value, "plugins", self.index, *pointer, message=message, kind=kind)

    @property
    def name(self) -> str:
        value = self.data.get("name")
        return value if isinstance(value, str) else f"#{self.index}"

    @property
    def source(self) -> Any:
        return self.data.get("source")

    @property
    def kind(self) -> str:
        """The kind of a source object; empty for a path."""
        kind = self.source.get("source") if isinstance(self.source, dict) else ""
        return kind if isinstance(kind, str) else ""

    @property
    def fields(self) -> dict[str, Any]:
        return self.source if isinstance(self.source, dict) else {}

    @property
    def traverses(self) -> bool:
        return isinstance(self.source, str) and ".." in self.source.replace("\\", "/").split("/")

    @property
    def bare(self) -> bool:
        """A bare name, to be found under ``metadata.pluginRoot``."""
        return isinstance(self.source, str) and bool(re.fullmatch(r"[^./\\~][^/\\]*", self.source))

    @property
    def place(self) -> str | None:
        """The folder of a local source, relative to the marketplace; ``None`` if it is not local or not sound."""
        source = self.source
        if not isinstance(source, str) or not source or self.traverses or "\0" in source or source.startswith(("/", "~")):
            return None
        root = self.marketplace.plugin_root
        if self.bare and root:
            return f"{root}/{source}"
        text = Path(source).as_posix()
        return "" if text == "." else text


class Marketplace:
    def __init__(self, root: Path, shown: str, file: JsonFile | None = None) -> None:
        self.root, self.shown = root, shown
        self.since = ""
        self.file = file or JsonFile(root / PLACE, self.show(PLACE))

    def show(self, rel: str) -> str:
        return rel if self.shown in ("", ".") else f"{self.shown}/{rel}" if rel else self.shown

    def at(self, message: str, *pointer: Pointer, **more: Any) -> Diagnostic:
        return self.file.at(message, *pointer, **more)

    @property
    def data(self) -> dict[str, Any]:
        return self.file.object

    @property
    def metadata(self) -> dict[str, Any]:
        value = self.data.get("metadata")
        return value if isinstance(value, dict) else {}

    @cached_property
    def plugin_root(self) -> str:
        value = self.metadata.get("pluginRoot")
        if not isinstance(value, str) or value.startswith(("/", "~")) or ".." in value.split("/"):
            return ""
        return Path(value).as_posix().removeprefix("./") if value not in (".", "./", "") else ""

    @cached_property
    def entries(self) -> list[Entry]:
        plugins = self.data.get("plugins")
        return [Entry(self, i, e) for i, e in enumerate(plugins) if isinstance(e, dict)] if isinstance(plugins, list) else []

    @cached_property
    def tree(self) -> Tree:
        return walk(self.root)

    @cached_property
    def plugins(self) -> list[Plugin]:
        """The local plugins, one a folder, with the entries that name them; the root's own plugin too."""
        found: dict[str, Plugin] = {}
        for entry in self.entries:
            place = entry.place
            if place is None:
                continue
            root = self.root / place
            try:
                usable = root.is_dir() and within(root, self.root)
            except (OSError, ValueError):
                usable = False
            if usable:
                plugin = found.setdefault(place, Plugin(root, self.show(place), self.root, self))
                plugin.entries.append(entry)
        if "" not in found and (self.root / MANIFEST).is_file():
            found[""] = Plugin(self.root, self.shown, self.root, self)
        return list(found.values())

    @cached_property
    def plugin_of(self) -> dict[int, Plugin]:
        """Index of an entry -> its plugin."""
        return {entry.index: plugin for plugin in self.plugins for entry in plugin.entries}

    @cached_property
    def names(self) -> list[str]:
        return [e.name for e in self.entries]

    @cached_property
    def names_before(self) -> list[str]:
        """The plugin names at the git revision ``since``. Reads one blob; no filter and no hook of the repository runs."""
        import json
        import subprocess

        if not self.since or self.since.startswith("-"):
            return []
        try:
            done = subprocess.run(  # noqa: S603  # an argument list, fixed program
                ["git", "-C", str(self.root), "-c", "core.fsmonitor=false", "cat-file", "blob",  # noqa: S607
                 f"{self.since}:./{PLACE}"],
                capture_output=True, timeout=20, check=False)
            data = json.loads(done.stdout[:5_000_000].decode("utf-8", "replace")) if done.returncode == 0 else {}
        except (OSError, subprocess.SubprocessError, ValueError, RecursionError):
            return []
        plugins = data.get("plugins") if isinstance(data, dict) else None
        entries = plugins if isinstance(plugins, list) else []
        return [p["name"] for p in entries if isinstance(p, dict) and isinstance(p.get("name"), str)]
