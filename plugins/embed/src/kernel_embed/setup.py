"""What a program asks for, as options and plugins of the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from kernel import Harness, Options, Registry, Tool, UsageError, hookimpl
from kernel_embed.hooks import Hook

EFFORTS = (None, "low", "medium", "high", "xhigh", "max")


def folder(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path).expanduser().absolute()


def merged(base: Options | None, extra: Mapping[str, Any], **given: Any) -> Options:
    """The options with what was given above them; ``None`` was not given.

    :raises UsageError: a value does not fit; the command line checks the same.
    """
    base = base or Options()
    options = msgspec.structs.replace(base, extra={**base.extra, **extra}, prompt=None,
                                      **{name: value for name, value in given.items() if value is not None})
    for name, folders in (("cwd", [options.cwd]), ("add_dirs", options.add_dirs), ("plugin_dirs", options.plugin_dirs)):
        for place in folders:
            if not place.is_dir():
                raise _wrong(name, f"{place} is no directory")
    if options.max_turns is not None and options.max_turns < 1:
        raise _wrong("max_turns", "must be a positive integer")
    if options.max_budget_usd is not None and not options.max_budget_usd > 0:  # nan is no limit either
        raise _wrong("max_budget_usd", "must be a positive number")
    if options.effort not in EFFORTS:
        raise _wrong("effort", f"{options.effort!r}: expected {', '.join(EFFORTS[1:])}")
    if options.fork_session and not (options.resume or options.continue_session):
        raise _wrong("fork", "needs resume or continue_session")
    if unknown := set(options.setting_sources) - {"user", "project", "local"}:
        raise _wrong("setting_sources", f"unknown source {min(unknown)!r}: expected user, project or local")
    return options


def _wrong(name: str, problem: str) -> UsageError:
    return UsageError(problem, context=f"Agent({name}=...)")


def require(harness: Harness, name: str, what: str) -> None:
    """:raises UsageError: the plugin that does it is not there."""
    plugin = harness.plugins.get(name)
    if plugin is None or plugin.state != "ready":
        raise UsageError(f"{what} the plugin {name!r}, which is {plugin.state if plugin else 'not installed'}", context="Agent",
                         hint="; ".join(plugin.errors) if plugin else f"pip install kernel-{name}")


def register(harness: Harness, tools: Sequence[Tool], hooks: Sequence[Hook[Any]], plugins: Mapping[str, object]) -> None:
    """What the program brings, as plugins of this harness alone. Messages name a hook by its function.

    :raises UsageError: a name is taken.
    :raises LoadError: an object of ``plugins`` has hooks that do not fit.
    """
    taken = {plugin.name for plugin in harness.plugins}
    for tool in tools:
        other = harness.plugins.provider("tools", tool.name)
        if other is not None and other.state == "ready":
            raise UsageError(f"the plugin {other.name!r} has a tool of that name", context=f"tool {tool.name}",
                             hint="give yours another one with @tool(name=...)")
    for name in plugins:
        if name in taken:
            raise _wrong("plugins", f"there is a plugin {name!r} already")
    objects = dict(plugins)
    if tools:
        objects[_free("program", {*taken, *objects})] = _bringing(tools)
    for hook in hooks:
        objects[_free(hook.name, {*taken, *objects})] = hook.plugin()
    for name, item in objects.items():
        harness.plugins.register(name, item)
        _name_models(harness, name, item)
    harness.dispatcher.refresh()


def _name_models(harness: Harness, name: str, item: Any) -> None:
    """Providers are chosen by name (``model="mine:any"``), and only manifests say who has which."""
    plugin = harness.plugins.get(name)
    if hasattr(item, "register_models") and plugin is not None and plugin.manifest is not None:
        found: Registry[Any] = Registry("models", harness.settings, harness.options)
        item.register_models(found)
        plugin.manifest.kernel.provides["models"] = found.names()


def _bringing(tools: Sequence[Tool]) -> object:
    def register_tools(register: Registry[Tool]) -> None:
        for tool in tools:
            register(tool)

    return SimpleNamespace(register_tools=hookimpl(register_tools))


def check_tools(harness: Harness, tools: Sequence[Tool]) -> None:
    """:raises UsageError: one of them is not there."""
    for tool in tools:
        if harness.tools.get(tool.name) is not tool:
            raise UsageError("cannot be registered", context=f"tool {tool.name}",
                             hint="; ".join(text for plugin in harness.plugins for text in plugin.errors))


def _free(name: str, taken: Iterable[str]) -> str:
    """A name that no plugin has."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
