"""A plugin as the rules see it: its manifest, its entries in a catalogue, its component files. Reads, never runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from kernel_linter.hooks_model import HookMap
from kernel_linter.markdown import TextFile
from kernel_linter.servers import LspServer, McpServer, Monitor, mcp_map
from kernel_linter.source import File, JsonFile, Pointer
from kernel_linter.tables import DEFAULT_PLACES
from kernel_linter.tree import Tree, walk

if TYPE_CHECKING:
    from kernel_linter.catalogue import Entry, Marketplace

MANIFEST = ".claude-plugin/plugin.json"


class PathRef:
    """A path that a manifest or an entry names: ``value`` at ``pointer`` of ``file``."""

    def __init__(self, plugin: Plugin, file: JsonFile, key: str, pointer: tuple[Pointer, ...], value: str) -> None:
        self.plugin, self.file, self.key, self.pointer, self.value = plugin, file, key, pointer, value

    def at(self, message: str, **more: Any) -> Any:
        return self.file.at(message, *self.pointer, **more)

    @property
    def absolute(self) -> bool:
        return self.value.startswith(("/", "\\", "~")) or self.value[1:2] == ":"

    @property
    def traverses(self) -> bool:
        return ".." in self.value.replace("\\", "/").split("/")

    @property
    def remote(self) -> bool:
        return "://" in self.value

    @property
    def dotted(self) -> bool:
        return self.value.startswith("./") or self.value == "."

    @property
    def sound(self) -> bool:
        """Whether it may be looked up at all."""
        return bool(self.value) and not (self.absolute or self.traverses or self.remote or "\0" in self.value)

    @property
    def rel(self) -> str:
        """The path from the plugin root, without ``./`` and without a slash at the end; empty for the root."""
        rel = PurePosixPath(self.value.replace("\\", "/")).as_posix()
        return "" if rel == "." else rel

    @property
    def path(self) -> Path:
        return self.plugin.root / self.rel

    @property
    def exists(self) -> bool:
        return self.sound and self.plugin.exists(self.rel)


class Plugin:
    """One plugin root. ``boundary`` is the folder that links may lead into (the marketplace, else the root itself)."""

    def __init__(self, root: Path, shown: str, boundary: Path | None = None, marketplace: Marketplace | None = None) -> None:
        self.root, self.shown, self.boundary, self.marketplace = root, shown, boundary or root, marketplace
        self.entries: list[Entry] = []
        self._files: dict[str, File] = {}
        self._there: dict[str, bool] = {}

    def show(self, rel: str) -> str:
        return rel if self.shown in ("", ".") else f"{self.shown}/{rel}" if rel else self.shown

    # -- the folder ------------------------------------------------------------------------------------------------
    @cached_property
    def tree(self) -> Tree:
        return walk(self.root)

    def exists(self, rel: str) -> bool:
        """Whether a path from the root is there and stays inside (links followed)."""
        if rel not in self._there:
            try:
                self._there[rel] = os.path.exists(path := f"{self.root}/{rel}") and self._inside(os.path.realpath(path))
            except (OSError, ValueError):
                self._there[rel] = False
        return self._there[rel]

    def _inside(self, real: str) -> bool:
        return any(real == root or real.startswith(f"{root.rstrip(os.sep)}{os.sep}") for root in self._real)

    @cached_property
    def _real(self) -> tuple[str, ...]:
        return os.path.realpath(self.root), os.path.realpath(self.boundary)

    def is_dir(self, rel: str) -> bool:
        try:
            return self.exists(rel) and (self.root / rel).is_dir()
        except (OSError, ValueError):
            return False

    def names(self, rel: str) -> list[str]:
        """Sorted names in a folder of the plugin, through links that stay inside."""
        try:
            return sorted(os.listdir(self.root / rel)) if self.is_dir(rel) else []
        except OSError:
            return []

    def markdown_under(self, rel: str) -> list[str]:
        """All ``.md`` files below a folder, recursively; links to folders are followed once each."""
        out: list[str] = []
        pending, seen = [rel], set()
        while pending and len(out) < 5000:
            folder = pending.pop(0)
            real = os.path.realpath(self.root / folder)
            if real in seen or folder.count("/") > 20:
                continue
            seen.add(real)
            for name in self.names(folder):
                path = f"{folder}/{name}" if folder else name
                if self.is_dir(path):
                    pending.append(path)
                elif name.lower().endswith(".md") and self.exists(path):
                    out.append(path)
        return out

    def json(self, rel: str) -> JsonFile:
        made = self._files.get(rel)
        if not isinstance(made, JsonFile):
            made = self._files[rel] = JsonFile(self.root / rel, self.show(rel), self)
        return made

    def file(self, rel: str) -> File:
        if rel not in self._files:
            self._files[rel] = File(self.root / rel, self.show(rel), self)
        return self._files[rel]

    @cached_property
    def json_files(self) -> list[JsonFile]:
        """Every JSON file that the host reads as part of the plugin."""
        places = [MANIFEST, "hooks/hooks.json", ".mcp.json", ".lsp.json", "settings.json", "monitors/monitors.json"]
        keys = ("hooks", "mcpServers", "lspServers", "monitors")
        refs = [r.rel for key in keys for r in self.paths(key) if r.sound and r.rel.endswith(".json")]
        themes = [f"{folder}/{n}" for folder in self.folders("themes") for n in self.names(folder) if n.endswith(".json")]
        return [self.json(rel) for rel in dict.fromkeys([*places, *refs, *themes])
                if self.is_file(rel) or (rel == MANIFEST and self.is_dir(rel))]

    def is_file(self, rel: str) -> bool:
        return self.exists(rel) and not self.is_dir(rel)

    # -- the manifest ----------------------------------------------------------------------------------------------
    @cached_property
    def manifest(self) -> JsonFile | None:
        try:
            (self.root / MANIFEST).lstat()
        except (OSError, ValueError):
            return None
        return self.json(MANIFEST)

    @cached_property
    def data(self) -> dict[str, Any]:
        return self.manifest.object if self.manifest else {}

    @cached_property
    def name(self) -> str:
        for source in (self.data, *(e.data for e in self.entries)):
            if isinstance(source.get("name"), str) and source["name"]:
                return str(source["name"])
        return self.root.resolve().name

    @property
    def head(self) -> File:
        """The file that findings about the whole plugin point at."""
        if self.manifest:
            return self.manifest
        return self.entries[0].file if self.entries else self.file("")

    def sources(self) -> Iterator[tuple[JsonFile, tuple[Pointer, ...], dict[str, Any]]]:
        """The objects that may declare components: the manifest and the entries."""
        if self.manifest:
            yield self.manifest, (), self.data
        for entry in self.entries:
            yield entry.file, ("plugins", entry.index), entry.data

    def declared(self, key: str) -> list[tuple[JsonFile, tuple[Pointer, ...], Any]]:
        """Every value of a component key with its place. ``themes`` and ``monitors`` are found under ``experimental`` too."""
        out = []
        for file, base, data in self.sources():
            if data.get(key) is not None:
                out.append((file, (*base, key), data[key]))
            more = data.get("experimental")
            if key in ("themes", "monitors") and isinstance(more, dict) and more.get(key) is not None:
                out.append((file, (*base, "experimental", key), more[key]))
        return out

    def paths(self, key: str) -> list[PathRef]:
        """The paths that a component key names, those of the object form of ``commands`` included."""
        out = []
        for file, pointer, value in self.declared(key):
            if isinstance(value, str):
                out.append(PathRef(self, file, key, pointer, value))
            elif isinstance(value, list):
                out += [PathRef(self, file, key, (*pointer, i), v) for i, v in enumerate(value) if isinstance(v, str)]
            elif key == "commands" and isinstance(value, dict):
                out += [PathRef(self, file, key, (*pointer, k, "source"), v["source"]) for k, v in value.items()
                        if isinstance(v, dict) and isinstance(v.get("source"), str)]
        return out

    def inline(self, key: str) -> list[tuple[JsonFile, tuple[Pointer, ...], dict[str, Any]]]:
        """The inline objects of a component key."""
        out = []
        for file, pointer, value in self.declared(key):
            out += [(file, pointer, value)] if isinstance(value, dict) else \
                [(file, (*pointer, i), v) for i, v in enumerate(value) if isinstance(v, dict)] if isinstance(value, list) else []
        return out

    def folders(self, key: str) -> list[str]:
        """Where a replacing kind is looked for: what the key names, or the default folder."""
        if self.declared(key):
            return [r.rel for r in self.paths(key) if r.sound]
        return [DEFAULT_PLACES[key]]

    # -- Markdown components ---------------------------------------------------------------------------------------
    def _markdown(self, key: str, kind: str) -> list[TextFile]:
        found: dict[str, TextFile] = {}
        for place in self.folders(key):
            alone = [place] if place.lower().endswith(".md") and self.is_file(place) else []
            rels = self.markdown_under(place) if self.is_dir(place) else alone
            for rel in rels:
                sub = PurePosixPath(rel).parent.relative_to(place).as_posix() if rel != place else "."
                found.setdefault(os.path.realpath(self.root / rel), TextFile(
                    self.root / rel, self.show(rel), kind, self, rel=rel, sub="" if sub == "." else sub))
        return list(found.values())

    @cached_property
    def skills(self) -> list[TextFile]:
        found: dict[str, TextFile] = {}
        for rel in self.skill_places():
            path = self.root / rel
            found.setdefault(os.path.realpath(path), TextFile(path, self.show(rel), "skill", self, rel=rel))
        return list(found.values())

    def skill_places(self) -> list[str]:
        out: list[str] = []
        if self.has_skills_folder or self.declared("skills"):
            for place in ["skills", *(r.rel for r in self.paths("skills") if r.sound)]:
                out += [f"{place}/SKILL.md" if place else "SKILL.md"]
                out += [f"{place}/{n}/SKILL.md" if place else f"{n}/SKILL.md" for n in self.names(place)]
        else:
            out.append("SKILL.md")
        return [rel for rel in dict.fromkeys(out) if rel != "skills/SKILL.md" and self._exactly(rel)]

    def _exactly(self, rel: str) -> bool:
        """Whether the file is there under exactly this name, on any file system."""
        folder, _, name = rel.rpartition("/")
        return self.is_file(rel) and name in self.names(folder)

    @cached_property
    def has_skills_folder(self) -> bool:
        return self.is_dir("skills")

    @cached_property
    def commands(self) -> list[TextFile]:
        return self._markdown("commands", "command")

    @cached_property
    def agents(self) -> list[TextFile]:
        return self._markdown("agents", "agent")

    @cached_property
    def styles(self) -> list[TextFile]:
        return self._markdown("outputStyles", "style")

    @cached_property
    def texts(self) -> list[TextFile]:
        return [*self.skills, *self.commands, *self.agents]

    @cached_property
    def workflows(self) -> list[File]:
        out = []
        for place in self.folders("workflows"):
            rels = [f"{place}/{n}" for n in self.names(place)] if self.is_dir(place) else [place]
            out += [self.file(rel) for rel in rels if rel.endswith((".js", ".mjs")) and self.is_file(rel)]
        return out

    @cached_property
    def themes(self) -> list[JsonFile]:
        out = []
        for place in self.folders("themes"):
            rels = [f"{place}/{n}" for n in self.names(place)] if self.is_dir(place) else [place]
            out += [self.json(rel) for rel in rels if rel.endswith(".json") and self.is_file(rel)]
        return out

    # -- hooks, servers, monitors ----------------------------------------------------------------------------------
    @cached_property
    def hook_files(self) -> list[JsonFile]:
        rels = ["hooks/hooks.json", *(r.rel for r in self.paths("hooks") if r.sound and r.rel.endswith(".json"))]
        return [self.json(rel) for rel in dict.fromkeys(rels) if self.is_file(rel)]

    @cached_property
    def hooks(self) -> list[HookMap]:
        out = [HookMap(f, f.object["hooks"], "file", ("hooks",), self) for f in self.hook_files if "hooks" in f.object]
        for file, at, data in self.inline("hooks"):
            wrapped = isinstance(data.get("hooks"), dict)  # a fault, but what is inside is meant
            out.append(HookMap(file, data["hooks"] if wrapped else data, "manifest", (*at, "hooks") if wrapped else at, self))
        out += [HookMap(t, t.data["hooks"], "skill", ("hooks",), self) for t in (*self.skills,
                                                                                 *self.commands) if "hooks" in t.data]
        return out

    @cached_property
    def mcp_files(self) -> list[JsonFile]:
        rels = [".mcp.json", *(r.rel for r in self.paths("mcpServers") if r.sound and r.rel.endswith(".json"))]
        return [self.json(rel) for rel in dict.fromkeys(rels) if self.is_file(rel)]

    @cached_property
    def servers(self) -> list[McpServer]:
        out = []
        for file in self.mcp_files:
            servers, base = mcp_map(file)
            out += [McpServer(k, v, file, (*base, k), self) for k, v in servers.items()]
        for file, at, data in self.inline("mcpServers"):
            inner = data.get("mcpServers")
            base, data = ((*at, "mcpServers"), inner) if isinstance(inner, dict) and not inner.get("command") else (at, data)
            out += [McpServer(k, v, file, (*base, k), self) for k, v in data.items()]
        return out

    @cached_property
    def server_names(self) -> frozenset[str]:
        return frozenset(s.name for s in self.servers)

    @cached_property
    def lsp_files(self) -> list[JsonFile]:
        rels = [".lsp.json", *(r.rel for r in self.paths("lspServers") if r.sound and r.rel.endswith(".json"))]
        return [self.json(rel) for rel in dict.fromkeys(rels) if self.is_file(rel)]

    @cached_property
    def lsp(self) -> list[LspServer]:
        out = [LspServer(k, v, f, (k,), self) for f in self.lsp_files for k, v in f.object.items() if not k.startswith("$")]
        return out + [LspServer(k, v, f, (*at, k), self) for f, at, data in self.inline("lspServers") for k, v in data.items()]

    @cached_property
    def monitor_files(self) -> list[JsonFile]:
        rels = [r.rel for r in self.paths("monitors") if r.sound] if self.declared("monitors") else ["monitors/monitors.json"]
        return [self.json(rel) for rel in rels if rel.endswith(".json") and self.is_file(rel)]

    @cached_property
    def monitors(self) -> list[Monitor]:
        out = [Monitor(str(v.get("name", i)), v, f, (i,), self) for f in self.monitor_files if isinstance(f.data, list)
               for i, v in enumerate(f.data) if isinstance(v, dict)]
        return out + [Monitor(str(v.get("name", "")), v, f, at, self) for f, at, v in self.inline("monitors")]

    # -- options ---------------------------------------------------------------------------------------------------
    @cached_property
    def options(self) -> dict[str, dict[str, Any]]:
        """``userConfig`` of the manifest, the entries and the channels, the entries that are objects."""
        out: dict[str, dict[str, Any]] = {}
        for _, _, data in self.sources():
            maps = [data.get("userConfig"), *(c.get("userConfig") for c in _list(data.get("channels")) if isinstance(c, dict))]
            for options in maps:
                if isinstance(options, dict):
                    out.update({k: v for k, v in options.items() if isinstance(v, dict)})
        return out

    @cached_property
    def agent_names(self) -> frozenset[str]:
        return frozenset(n for a in self.agents for n in (a.name, a.stem, f"{self.name}:{a.name}"))

    @cached_property
    def skill_names(self) -> frozenset[str]:
        return frozenset(n for s in (*self.skills, *self.commands) for n in (s.name, s.stem, f"{self.name}:{s.name}"))

    @cached_property
    def kernel(self) -> dict[str, Any] | None:
        """``metadata.kernel`` of the manifest; ``None`` where there is none or it is no object."""
        metadata = self.data.get("metadata")
        part = metadata.get("kernel") if isinstance(metadata, dict) else None
        return part if isinstance(part, dict) else None

    @cached_property
    def extra_tools(self) -> frozenset[str]:
        """Tools that a kernel plugin declares in its manifest."""
        provides = (self.kernel or {}).get("provides")
        return frozenset(t for t in _list(provides.get("tools") if isinstance(provides, dict) else None) if isinstance(t, str))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
