"""Which servers a run has: every documented place, precedence, approval, policy (MCP contract, sections 1 and 9)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel import UsageError
from kernel_mcp.entries import BadEntry, Scope, Server, parse
from kernel_mcp.names import plugin_server
from kernel_mcp.policy import Lists
from kernel_mcp.store import PROJECT_FILE, global_config, project_entry, read_object

if TYPE_CHECKING:
    from kernel import Options, Plugin, Settings

MANAGED_DIR = Path("/etc/claude-code")
EXCLUSIVE = "You cannot dynamically configure MCP servers when an enterprise MCP config is present"
CANNOT_ADD = "Cannot add MCP server: enterprise MCP configuration is active and has exclusive control over MCP servers"
PENDING_APPROVAL = "waits for approval"
REJECTED = "rejected in this project"


class Gathered:
    """The servers of a run by name, and everything that must be said about the others."""

    def __init__(self) -> None:
        self.servers: dict[str, Server] = {}
        self.disabled: dict[str, tuple[Server, str]] = {}
        """Configured and not connected, with the reason."""
        self.warnings: list[str] = []
        self.errors: list[dict[str, str]] = []
        """Entries that cannot be used: ``{name, type, message}``, as the init message shows them."""

    def bad(self, name: str, source: str, kind: str, message: str) -> None:
        self.errors.append({"name": name, "type": kind, "message": message})
        self.warnings.append(f"{source}, MCP server {name!r}: {message}; it is skipped")


def managed_file(settings: Settings) -> Path:
    """``managed-mcp.json`` beside the managed settings."""
    folders = [Path(layer.path).parent for layer in settings.layers if layer.scope == "managed"]
    return (folders[0] if folders else MANAGED_DIR) / "managed-mcp.json"


def gather(options: Options, settings: Settings, plugins: list[Plugin]) -> Gathered:
    """Read every source, highest first.

    :raises UsageError: ``--mcp-config`` cannot be used, or is given where managed configuration rules alone.
    """
    found = Gathered()
    given = list(options.extra.get("mcp_config") or ())
    strict = bool(options.extra.get("strict_mcp_config"))
    managed = managed_file(settings)
    exclusive = _file(found, managed)
    if exclusive is not None or managed.exists():
        if strict or any(not _only_sdk(g) for g in given):
            raise UsageError(EXCLUSIVE, context="--mcp-config" if given else "--strict-mcp-config")
        _take(found, _servers(found, str(managed), exclusive or {}), "managed", str(managed))
    else:
        if not options.extra.get("bare") or given:
            _all(found, options, settings, plugins, given, strict)
    _apply(found, settings)
    return found


def _all(found: Gathered, options: Options, settings: Settings, plugins: list[Plugin], given: list[str], strict: bool) -> None:
    for text in given:
        source, entries = _given(text, options)
        _take(found, entries, "run", source)
    for name, instance in (options.extra.get("mcp_servers") or {}).items():
        found.servers.setdefault(name, Server(name=name, kind="sdk", scope="run", source="the program", instance=instance))
    if strict or options.extra.get("bare"):
        return
    if not _plugins_only(settings):
        _people(found, options, settings)
    for plugin in plugins:
        _plugin(found, plugin, settings)


def inline(entries: list[Any], options: Options, settings: Settings) -> Gathered:
    """The servers that an agent's definition holds itself; names of configured ones need nothing.

    Policy holds for all of them. Whether its file may bring servers in this folder was judged by whoever read it.
    """
    found = Gathered()
    if managed_file(settings).exists():
        return found
    for entry in entries:
        if isinstance(entry, dict):
            _take(found, entry, "agent", "the agent's definition")
    _apply(found, settings)
    return found


def given(entries: dict[str, Any], settings: Settings) -> tuple[dict[str, Server], dict[str, str]]:
    """The servers that a program names while a session lives, and why others cannot be had."""
    found = Gathered()
    if managed_file(settings).exists() and any(not isinstance(e, dict) or e.get("type") != "sdk" for e in entries.values()):
        return {}, dict.fromkeys(entries, EXCLUSIVE)
    _take(found, entries, "run", "the program")
    _apply(found, settings)
    errors = {e["name"]: e["message"] for e in found.errors} | {n: reason for n, (_, reason) in found.disabled.items()}
    return found.servers, errors


def _apply(found: Gathered, settings: Settings) -> None:
    lists = Lists.of(settings)
    for name, server in list(found.servers.items()):
        if reason := lists.verdict(server):
            found.disabled[name] = (found.servers.pop(name), reason)


def _plugins_only(settings: Settings) -> bool:
    only = settings.managed("strictPluginOnlyCustomization")
    return only is True or (isinstance(only, list) and "mcp" in only)


def _people(found: Gathered, options: Options, settings: Settings) -> None:
    cwd = Path(options.cwd)
    path = global_config()
    everything = _file(found, path) or {}
    mine = project_entry(everything, cwd)
    if "local" in options.setting_sources:
        _take(found, _servers(found, str(path), mine), "local", str(path))
    if "project" in options.setting_sources:
        file = cwd / PROJECT_FILE
        entries = _servers(found, str(file), _file(found, file) or {})
        _take(found, entries, "project", str(file))
        for name in entries:
            server = found.servers.get(name)
            if server is not None and server.scope == "project" and (reason := approval(name, options, settings)):
                found.disabled[name] = (found.servers.pop(name), reason)
    if "user" in options.setting_sources:
        _take(found, _servers(found, str(path), everything), "user", str(path))
    off = mine.get("disabledMcpServers")
    for name in off if isinstance(off, list) else ():
        if name in found.servers:
            found.disabled[name] = (found.servers.pop(name), "switched off in this project")


def approval(name: str, options: Options, settings: Settings) -> str:
    """Why a server of the project's own file is not connected; empty where it is (1.3)."""
    def lists(key: str) -> Iterator[tuple[str, list[Any]]]:
        return ((layer.scope, value) for layer, value in settings.by_layer(key) if isinstance(value, list))

    if any(name in names for _, names in lists("disabledMcpjsonServers")):
        return REJECTED
    theirs = ("project", "local")
    if any(name in names and (settings.trusted or scope not in theirs) for scope, names in lists("enabledMcpjsonServers")):
        return ""
    if any(value is True and (settings.trusted or layer.scope not in theirs)
           for layer, value in settings.by_layer("enableAllProjectMcpServers")):
        return ""
    if options.print_mode and settings.own("kernel.mcp.require_approval_in_print_mode") is not True:
        return ""
    if options.permission_mode == "bypassPermissions" and settings.own("skipDangerousModePermissionPrompt") is True:
        return ""
    return PENDING_APPROVAL


def _plugin(found: Gathered, plugin: Plugin, settings: Settings) -> None:
    """The servers of one plugin; a double of what is there already is dropped by its endpoint."""
    root = Path(plugin.root)
    entries: dict[str, Any] = {}
    sources = [root / ".mcp.json"]
    declared = plugin.manifest.mcp_servers if plugin.manifest else None
    for part in declared if isinstance(declared, list) else [declared] if declared is not None else []:
        if isinstance(part, dict):
            entries |= part
        elif (path := (root / part).resolve()).is_relative_to(root.resolve()):
            sources.append(path)
        else:
            found.warnings.append(f"plugin {plugin.name}: mcpServers {part!r} leads out of the plugin; it is skipped")
    for source in dict.fromkeys(sources):
        data = _file(found, source)
        if data is not None:
            wrapped = data.get("mcpServers")
            entries = {**(wrapped if isinstance(wrapped, dict) else {} if wrapped is not None else data), **entries}
    if not entries:
        return
    data_dir = str(settings.config_dir / "plugins" / "data" / re.sub(r"[^A-Za-z0-9_-]", "-", plugin.id))
    variables = {"CLAUDE_PLUGIN_ROOT": str(root), "CLAUDE_PROJECT_DIR": str(settings.project_root),
                 "CLAUDE_PLUGIN_DATA": data_dir, **_user_config(plugin, settings)}
    known = {s.endpoint for s in found.servers.values()} | {s.endpoint for s, _ in found.disabled.values()}
    for key, entry in entries.items():
        name = plugin_server(plugin.name, key)
        server = _parsed(found, name, entry, "plugin", f"plugin {plugin.name}", variables=variables, root=str(root),
                         data=data_dir)
        if server is None:
            continue
        if server.endpoint in known:
            found.warnings.append(f"plugin {plugin.name}: the server {key!r} is configured already under another name; "
                                  "the plugin's entry is left out")
            continue
        found.servers[name] = server


def _user_config(plugin: Plugin, settings: Settings) -> dict[str, str]:
    """Values of ``pluginConfigs`` over the manifest's defaults. Project files do not count: they could redirect a secret."""
    declared = (plugin.manifest.user_config if plugin.manifest else None) or {}
    options: dict[str, Any] = {key: option.get("default") for key, option in declared.items() if isinstance(option, dict)}
    for layer, configs in reversed(settings.by_layer("pluginConfigs")):
        for id in (plugin.name, plugin.id) if layer.scope in ("user", "cli", "managed") and isinstance(configs, dict) else ():
            entry = configs.get(id)
            if isinstance(entry, dict) and isinstance(entry.get("options"), dict):
                options |= entry["options"]
    return {f"user_config.{k}": v if isinstance(v, str) else json.dumps(v) for k, v in options.items() if v is not None}


def _given(text: str, options: Options) -> tuple[str, dict[str, Any]]:
    """The servers of one ``--mcp-config``: JSON, or a path.

    :raises UsageError: it cannot be read.
    """
    if text.lstrip().startswith("{"):
        source = "--mcp-config"
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"is not valid JSON: {error}", context=source, hint="give a path or one JSON object") from None
    else:
        path = Path(text).expanduser()
        path = path if path.is_absolute() else Path(options.cwd) / path
        source = f"--mcp-config {path}"
        try:
            data = read_object(path)
        except (ValueError, OSError) as error:
            raise UsageError(str(error)[:300], context=source) from None
        if data is None:
            raise UsageError("there is no such file", context=source, hint="give a path or one JSON object")
    servers = data.get("mcpServers") if isinstance(data, dict) else None
    if not isinstance(servers, dict):
        raise UsageError('must be an object with an object "mcpServers"', context=source)
    return source, servers


def _only_sdk(text: str) -> bool:
    """Whether a ``--mcp-config`` names servers of the program alone, which managed configuration does not forbid."""
    try:
        servers = json.loads(text)["mcpServers"]
        return all(entry["type"] == "sdk" for entry in servers.values())
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _file(found: Gathered, path: Path) -> dict[str, Any] | None:
    try:
        return read_object(path)
    except (ValueError, OSError) as error:
        found.warnings.append(f"{path} {error}; no MCP server is read from it")
        return None


def _servers(found: Gathered, source: str, data: dict[str, Any]) -> dict[str, Any]:
    servers = data.get("mcpServers")
    if servers is not None and not isinstance(servers, dict):
        found.warnings.append(f"{source}, mcpServers: must be an object; it is skipped")
    return servers if isinstance(servers, dict) else {}


def _take(found: Gathered, entries: dict[str, Any], scope: Scope, source: str) -> None:
    """The whole entry of the highest source counts; fields are never mixed."""
    for name, entry in entries.items():
        if name not in found.servers and name not in found.disabled:
            server = _parsed(found, name, entry, scope, source)
            if server is not None:
                found.servers[name] = server


def _parsed(found: Gathered, name: str, entry: Any, scope: Scope, source: str, **more: Any) -> Server | None:
    try:
        return parse(name, entry, scope, source, **more,
                     warn=lambda text: found.warnings.append(f"{source}, MCP server {name!r}: {text}"))
    except BadEntry as error:
        found.bad(name, source, error.kind, str(error))
        return None
