"""Subcommands that plugins bring: found by the manifest, loaded when they are typed."""

from __future__ import annotations

from typing import Any

from kernel.frontend import Command
from kernel.installed import here
from kernel.plugins import Plugin, PluginSet, decide, find
from kernel.registry import Registry


def plugin_command(names: list[str]) -> tuple[str, Command] | None:
    """The first of these names that a plugin provides, and its command; no other plugin is loaded. ``None``: nobody does."""
    found = find(installed=here())
    provided = _provided(found)
    name = next((name for name in names if name in provided), None)
    if name is None:
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
    return None if command is None else (name, command)


def _blocked() -> list[str]:
    from pathlib import Path

    from kernel.settings import Settings

    return Settings.load(Path.cwd()).blocked()


def summaries() -> dict[str, str]:
    """Name -> plugin of every command that a plugin provides."""
    return _provided(find(installed=here()))


def _provided(found: list[Plugin]) -> dict[str, str]:
    return {name: p.name for p in found if p.manifest for name in p.manifest.kernel.provides.get("commands", ())}


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
    found = find(installed=here())
    theirs = {full: plugin for full, plugin in _provided(found).items() if full.startswith(f"{name} ")}
    if not theirs:
        return []
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
