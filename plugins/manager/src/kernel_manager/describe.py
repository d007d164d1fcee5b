"""What a plugin is and what it will do, read from its files. Nothing of it runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from kernel import Manifest
from kernel_manager.errors import ManagerError
from kernel_manager.names import check_plugin_name, shown
from kernel_manager.tree import digest
from kernel_manager.wheels import MANIFEST, Code, code_of_folder, code_of_wheel

MAX_MANIFEST = 1 << 20
_MERGED = ("hooks", "mcpServers", "lspServers")


class Description(Struct, kw_only=True):
    """One plugin folder. ``kind`` is ``code`` where it brings anything that can run (see ``runs``), else ``data``.

    ``digest`` is over all files of ``base``, the folder that is stored; ``root`` is the plugin root inside it.
    """

    name: str
    version: str | None
    description: str | None
    kind: str
    digest: str
    root: Path
    hooks: dict[str, int] = field(default_factory=dict)
    tools: list[str] = field(default_factory=list)
    provides: dict[str, list[str]] = field(default_factory=dict)
    skills: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)
    mcp_servers: list[str] = field(default_factory=list)
    lsp_servers: list[str] = field(default_factory=list)
    monitors: list[str] = field(default_factory=list)
    executables: list[str] = field(default_factory=list)
    capabilities: dict[str, Any] = field(default_factory=dict)
    implements: list[str] = field(default_factory=list)
    code: Code | None = None
    dependencies: list[Any] = field(default_factory=list)
    kernel_dependencies: list[str] = field(default_factory=list)
    requires_kernel: str | None = None
    default_enabled: bool = True
    user_config: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def runs(self) -> list[str]:
        """What of it can run, in words; empty for text alone."""
        found = [f"Python code (module {self.code.module})"] if self.code and self.implements else []
        found += [f"hooks on {', '.join(sorted(self.hooks))}"] if self.hooks else []
        for what, names in (("MCP servers", self.mcp_servers), ("language servers", self.lsp_servers),
                            ("monitors", self.monitors), ("programs on the PATH", self.executables)):
            found += [f"{what}: {', '.join(names)}"] if names else []
        return found


def describe(root: Path, *, base: Path | None = None, entry: dict[str, Any] | None = None, code: Code | None = None,
             fallback_name: str | None = None, hashed: bool = True) -> Description:
    """Read a plugin folder.

    :param base: the folder that will be stored, where it is not the plugin root.
    :param entry: the marketplace entry, whose components are merged (plugins contract, 6.4).
    :param code: the Python part where the source has told it (a wheel); else ``pyproject.toml`` is read.
    :param fallback_name: the name where there is no manifest.
    :param hashed: whether the digest is wanted; it reads every file.
    :raises ManagerError: ``bad-manifest``, ``bad-name``, ``strict-conflict``.
    """
    data = _manifest_of(root)
    present = data is not None
    data = data if data is not None else {"name": (entry or {}).get("name") or fallback_name or root.name}
    check_plugin_name(data.get("name"))
    data = _with_entry(data, entry, present)
    manifest = _model(data, root)
    part = data.get("metadata", {}).get("kernel", {}) if isinstance(data.get("metadata"), dict) else {}
    part = part if isinstance(part, dict) else {}
    implements, capabilities = _texts(part.get("implements")), part.get("capabilities")
    if code is None and implements:
        code = code_of_folder(root)
    found = Description(
        name=manifest.name, version=manifest.version, description=manifest.description, kind="data",
        digest=digest(base or root) if hashed else "", root=root, implements=implements, code=code,
        provides={k: _texts(v) for k, v in part.get("provides", {}).items()} if isinstance(part.get("provides"), dict) else {},
        capabilities=capabilities if isinstance(capabilities, dict) else {},
        kernel_dependencies=_texts(part.get("dependencies")),
        requires_kernel=part.get("requires") if isinstance(part.get("requires"), str) else None,
        dependencies=manifest.dependencies, default_enabled=manifest.default_enabled,
        user_config=manifest.user_config or {})
    found.tools = found.provides.get("tools", [])
    _components(found, root, data)
    if implements and code is None:
        found.warnings.append("its manifest names Python hooks, but there is no entry point, so they do not run")
    if not present and not _anything(found) and entry is None:
        raise ManagerError("not-a-plugin", f"{root.name} holds no {MANIFEST} and nothing that a plugin brings",
                           hint="a marketplace is added with kernel plugins marketplace add")
    found.kind = "code" if found.runs else "data"
    return found


def describe_stored(root: Path, base: Path, *, hashed: bool = True) -> Description:
    """A plugin of the store; one that came as a wheel has its Python part beside the plugin root.

    :raises ManagerError: as ``describe``.
    """
    code = code_of_wheel(base) if base != root and any(base.glob("*.dist-info")) else None
    return describe(root, base=base, code=code, hashed=hashed)


def _manifest_of(root: Path) -> dict[str, Any] | None:
    path = root / MANIFEST
    if not os.path.lexists(path):
        return None
    if not path.is_file() or not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise ManagerError("bad-manifest", "is no regular file inside the plugin", context=str(MANIFEST))
    if path.stat().st_size > MAX_MANIFEST:
        raise ManagerError("bad-manifest", f"is over {MAX_MANIFEST >> 20} MiB", context=str(MANIFEST))
    data = read_json(path)
    if not isinstance(data, dict):
        raise ManagerError("bad-manifest", f"must hold one JSON object, found {type(data).__name__}", context=str(MANIFEST))
    try:
        msgspec.json.decode(path.read_bytes())  # as the kernel reads it: no NaN, no half of a character
    except msgspec.DecodeError as error:
        raise ManagerError("bad-manifest", f"is not valid JSON: {error}", context=str(MANIFEST)) from None
    return data


def read_json(path: Path) -> Any:
    """:raises ManagerError: ``bad-manifest``, with the place in the file."""
    try:
        return json.loads(path.read_bytes().decode("utf-8"))
    except json.JSONDecodeError as error:
        raise ManagerError("bad-manifest", f"is not valid JSON: {error.msg} in line {error.lineno}", context=path.name) from None
    except (UnicodeDecodeError, RecursionError, OSError, ValueError) as error:
        raise ManagerError("bad-manifest", f"cannot be read: {type(error).__name__}", context=path.name) from None


def merged_manifest(root: Path, entry: dict[str, Any]) -> dict[str, Any]:
    """The manifest of a plugin folder with what its marketplace entry adds.

    :raises ManagerError: ``bad-manifest``, ``strict-conflict``.
    """
    data = _manifest_of(root)
    return _with_entry(data if data is not None else {"name": entry.get("name")}, entry, data is not None)


def _with_entry(data: dict[str, Any], entry: dict[str, Any] | None, present: bool) -> dict[str, Any]:
    """The manifest with what the marketplace entry adds; with ``strict: false`` the entry is the whole definition."""
    if entry is None:
        return data
    own = {k: v for k, v in entry.items() if k in COMPONENTS}
    declared = [k for k in COMPONENTS if k in data]
    if entry.get("strict") is False:
        if present and declared:
            raise ManagerError("strict-conflict", f"its entry says strict: false, but its manifest declares {declared[0]}",
                               context=f"plugin {shown(data['name'])}")
        return {**{k: v for k, v in entry.items() if k not in _ENTRY_ONLY}, **data, **own}
    merged = dict(data)
    for key in ("version", "description", "dependencies", "defaultEnabled"):
        if key in entry and (key not in data or key == "defaultEnabled"):
            merged[key] = entry[key]
    for key, value in own.items():
        mine = merged.get(key)
        if mine is None:
            merged[key] = value
        elif isinstance(mine, dict) and isinstance(value, dict) and key in _MERGED:
            merged[key] = {**value, **mine}
        elif key not in _MERGED and isinstance(mine, str | list) and isinstance(value, str | list):
            merged[key] = [*([mine] if isinstance(mine, str) else mine), *([value] if isinstance(value, str) else value)]
    return merged


COMPONENTS = ("skills", "commands", "agents", "workflows", "outputStyles", "hooks", "mcpServers", "lspServers", "themes",
              "monitors")
_ENTRY_ONLY = ("source", "strict", "category", "tags", "relevance", "headersHelper")


def _model(data: dict[str, Any], root: Path) -> Manifest:
    known = {f.encode_name for f in msgspec.structs.fields(Manifest)}
    try:
        return msgspec.convert({k: v for k, v in data.items() if k in known and not k.startswith("$")}, Manifest)
    except msgspec.ValidationError as error:
        raise ManagerError("bad-manifest", str(error), context=str(MANIFEST)) from None


def _texts(value: Any) -> list[str]:
    return [v for v in value if isinstance(v, str)] if isinstance(value, list) else []


def _components(found: Description, root: Path, data: dict[str, Any]) -> None:
    folders = [root / "skills", *_paths(found, root, data.get("skills"))]
    found.skills = sorted({p.parent.name for f in folders for p in (*f.glob("SKILL.md"), *f.glob("*/SKILL.md"))})
    if not found.skills and (root / "SKILL.md").is_file():
        found.skills = [found.name]
    found.commands = _markdown(found, root, data.get("commands"), "commands")
    found.agents = _markdown(found, root, data.get("agents"), "agents")
    found.hooks = _hooks(found, root, data.get("hooks"))
    found.mcp_servers = _servers(found, root, ".mcp.json", data.get("mcpServers"), "mcpServers")
    found.lsp_servers = _servers(found, root, ".lsp.json", data.get("lspServers"), "lspServers")
    experimental = data.get("experimental") if isinstance(data.get("experimental"), dict) else {}
    given = (experimental or {}).get("monitors") or data.get("monitors") or "./monitors/monitors.json"
    for monitors in [given] if isinstance(given, list) else [_json(found, p) for p in _paths(found, root, given, quiet=True)]:
        found.monitors += [str(m.get("name")) for m in monitors or [] if isinstance(m, dict)]
    bin_folder = root / "bin"
    if bin_folder.is_dir() and not bin_folder.is_symlink():
        found.executables = sorted(p.name for p in bin_folder.iterdir() if p.is_file())


def _paths(found: Description, root: Path, value: Any, quiet: bool = False) -> list[Path]:
    """Paths of a manifest key, checked: they stay inside (plugins contract, 3.3)."""
    paths: list[Path] = []
    for text in [value] if isinstance(value, str) else _texts(value):
        if text.startswith("https://"):
            continue
        real = Path(os.path.realpath(root / text))
        if ".." in text.split("/") or os.path.isabs(text) or not real.is_relative_to(os.path.realpath(root)):
            raise ManagerError("unsafe-path", f"the path {shown(text)} leaves the plugin", context=f"plugin {found.name}")
        if not text.startswith("./") and text != ".":
            found.errors.append(f"the path {shown(text)} must start with './'")
        elif not real.exists():
            if not quiet:
                found.errors.append(f"the path {shown(text)} does not exist")
        else:
            paths.append(real)
    return paths


def _markdown(found: Description, root: Path, value: Any, folder: str) -> list[str]:
    if isinstance(value, dict):
        return sorted(str(k) for k in value)
    places = _paths(found, root, value) if value is not None else [root / folder]
    return sorted({p.stem for place in places for p in ([place] if place.is_file() else place.rglob("*.md"))})


def _json(found: Description, path: Path) -> Any:
    try:
        return read_json(path)
    except ManagerError as error:
        found.errors.append(f"{path.name}: {error.message}")
        return None


def _hooks(found: Description, root: Path, value: Any) -> dict[str, int]:
    maps: list[Any] = [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, dict)]
    files = {root / "hooks" / "hooks.json"} if (root / "hooks" / "hooks.json").is_file() else set()
    files |= set(_paths(found, root, value))
    for path in sorted(files):
        data = _json(found, path)
        inner = data.get("hooks") if isinstance(data, dict) else None
        if isinstance(inner, dict):
            maps.append(inner)
        elif data is not None:
            found.errors.append(f"{path.name}: must be an object with an object 'hooks'")
    counts: dict[str, int] = {}
    for events in maps:
        for event, groups in events.items():
            lists = [g.get("hooks") for g in groups if isinstance(g, dict)] if isinstance(groups, list) else []
            number = sum(len(handlers) for handlers in lists if isinstance(handlers, list))
            counts[str(event)] = counts.get(str(event), 0) + number
    return counts


def _servers(found: Description, root: Path, default: str, value: Any, wrapper: str) -> list[str]:
    maps: list[Any] = [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, dict)]
    files = [root / default] if (root / default).is_file() else []
    files += [p for p in _paths(found, root, value, quiet=True) if p.suffix == ".json" and p not in files]
    maps += [_json(found, p) for p in files]
    names: list[str] = []
    for servers in maps:
        inner = servers.get(wrapper, servers) if isinstance(servers, dict) else {}
        names += [str(n) for n in inner] if isinstance(inner, dict) else []
    return list(dict.fromkeys(names))


def _anything(found: Description) -> bool:
    return bool(found.skills or found.commands or found.agents or found.hooks or found.mcp_servers or found.lsp_servers
                or found.monitors or found.executables or found.errors)
