"""Subcommands that plugins bring: found by the manifest, loaded when they are typed."""

from __future__ import annotations

from typing import Any

from kernel.frontend import Command
from kernel.installed import here
from kernel.plugins import PluginSet, decide, find
from kernel.registry import Registry


def plugin_command(name: str) -> Command | None:
    """The command of that name; only the plugin that provides it is loaded. ``None``: nobody provides it."""
    found = find(installed=here())
    if not any(p.manifest and name in p.manifest.kernel.provides.get("commands", ()) for p in found):
        return None
    decide(found, _blocked())
    plugins = PluginSet(found)
    registry: Registry[Any] = Registry("commands")
    plugins.fill(registry, "commands", only=name)
    provider = plugins.provider("commands", name)
    command: Command | None = registry.get(name)
    if command is None and provider is not None:
        from kernel.errors import PluginError

        raise PluginError(provider.name, f"does not bring the command {name!r}: {'; '.join(provider.errors) or 'not registered'}",
                          hint="kernel doctor shows all plugins")
    return command


def _blocked() -> list[str]:
    from pathlib import Path

    from kernel.settings import Settings

    return Settings.load(Path.cwd()).blocked()


def summaries() -> dict[str, str]:
    """Name -> plugin of every command that a plugin provides."""
    return {name: p.name for p in find(installed=here()) if p.manifest for name in p.manifest.kernel.provides.get("commands", ())}


def group_help(name: str) -> str:
    """What the commands of two words are that begin with that one, with their summaries; empty where there are none.

    The plugins that bring them are loaded, and no others; one that cannot be is named instead of its summaries.
    """
    rows = group(name)
    width = max((len(row[0]) for row in rows), default=0)
    return "\n".join([f"usage: kernel {name} COMMAND [arguments]", "",
                      *(f"  {word:<{width}}  {told}" for word, told in rows)]) if rows else ""


def group(name: str) -> list[tuple[str, str]]:
    """Second word and summary of every command of a group, in order."""
    theirs = {full: plugin for full, plugin in summaries().items() if full.startswith(f"{name} ")}
    if not theirs:
        return []
    found = find(installed=here())
    decide(found, _blocked())
    plugins = PluginSet(found)
    rows: list[tuple[str, str]] = []
    for full, plugin in sorted(theirs.items()):
        registry: Registry[Any] = Registry("commands")
        plugins.fill(registry, "commands", only=full)
        command: Command | None = registry.get(full)
        provider = plugins.get(plugin)
        told = command.summary if command else f"cannot be used: {'; '.join(provider.errors) if provider else 'not registered'}"
        rows.append((full.removeprefix(f"{name} "), f"{told} (plugin {plugin})"))
    return rows
