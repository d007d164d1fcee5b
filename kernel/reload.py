"""Take up a changed plugin set in a running session, between two batches: installed, updated and removed plugins.

Nothing that is under way is dropped: a call, a request or a background task keeps the objects that it began with. Unchanged
plugins keep their objects, too. A Python plugin whose new version cannot be loaded stays in the old one, and that is said.

What a session fixes when it opens stays until the next one: model provider, policy, sandbox, transcript store and the system
prompt (a new one would make every cached prefix worthless).
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from kernel.dispatch import Dispatcher
from kernel.errors import LoadError
from kernel.extension import Extension, each
from kernel.plugins import Plugin, PluginSet, decide
from kernel.registry import Registry
from kernel.settings import Settings

if TYPE_CHECKING:
    from kernel.harness import Harness
    from kernel.session import Session

_KINDS = ("tools", "prompt_parts", "extensions", "validators", "middleware")


class Reloaded(Struct):
    """What a reload did, by plugin name. ``kept``: those that stay in their old version, with the reason."""

    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


async def reload(session: Session) -> Reloaded:
    """Bring the session and its harness to what is installed and enabled now. Call it where no batch runs."""
    harness, old, done = session.harness, session.harness.plugins, Reloaded()
    if harness.lock is not None:
        return done  # a locked harness runs what is locked
    options = harness.options
    harness.settings = Settings.load(options.cwd, cli=options.settings, sources=options.setting_sources)
    found = harness._found()
    decide(found, harness._blocked(found))
    plugins = _merged(old, found, done)
    if not done:
        return done
    before = {kind: harness.__dict__.pop(kind, None) for kind in _KINDS}
    harness.__dict__.pop("compactor", None)
    harness._chosen.clear()
    harness.plugins = session.plugins = _with_embedded(old, PluginSet(plugins))
    harness.dispatcher = Dispatcher(harness.plugins.manager)
    same = {p.name for p in harness.plugins} - {*done.added, *done.changed}
    for kind in _KINDS:
        if before[kind] is not None:
            harness.__dict__[kind] = _refilled(harness, kind, before[kind], same)
    await _extensions(session, before["extensions"])
    _tools(session, before["tools"])
    session.fold()
    await each(session, "reload")
    return done


def _merged(old: PluginSet, found: list[Plugin], done: Reloaded) -> list[Plugin]:
    """The new list: the old object where nothing changed, the new one where it did, the old one where the new cannot load."""
    had = {p.name: p for p in old}
    result: list[Plugin] = []
    for plugin in found:
        before = had.pop(plugin.name, None)
        if before is not None and _same(before, plugin):
            result.append(before)
        elif before is None:
            done.added.append(plugin.name)
            result.append(plugin)
        elif before.state == "ready" and (reason := _fails(before, plugin)) is not None:
            done.kept[plugin.name] = reason
            result.append(before)
        else:
            done.changed.append(plugin.name)
            result.append(plugin)
    done.removed += [name for name, plugin in had.items() if not _embedded(plugin)]
    return result


def _same(one: Plugin, other: Plugin) -> bool:
    """The same files, and wanted as before. One that broke when it was loaded is still the same."""
    if any(getattr(one, name) != getattr(other, name) for name in ("root", "source", "version", "module", "path")):
        return False
    return one.state == other.state or (one.state == "broken" and other.state == "ready" and one.failure is not None)


def _fails(before: Plugin, plugin: Plugin) -> str | None:
    """Why the new version of a ready plugin cannot be used; ``None``: it can. One that was blocked is no failure."""
    if plugin.state == "blocked":
        return None
    if plugin.state == "broken":
        return "; ".join(plugin.errors)
    if before.loaded is None or plugin.module is None:
        return None  # loaded at its first use, as always
    hidden, path = _hide(before), list(sys.path)
    sys.path[:] = [p for p in sys.path if p not in before.path or p in plugin.path]
    importlib.invalidate_caches()
    try:
        plugin.load()
    except LoadError as error:
        _hide(plugin)
        sys.path[:] = path
        sys.modules.update(hidden)
        return str(error)
    return None


def _hide(plugin: Plugin) -> dict[str, ModuleType]:
    """Take a plugin's modules out of the table of modules. Who holds one keeps it."""
    top = (plugin.module or "").split(".")[0]
    names = [name for name, module in list(sys.modules.items()) if name == top or name.startswith(f"{top}.")
             or any(str(getattr(module, "__file__", None) or "").startswith(f"{place}/") for place in plugin.path)]
    return {name: sys.modules.pop(name) for name in names}


def _embedded(plugin: Plugin) -> bool:
    """Registered by a program that embeds the kernel; such a one is found nowhere."""
    return plugin.module is None and plugin.loaded is not None


def _with_embedded(old: PluginSet, new: PluginSet) -> PluginSet:
    for plugin in old:
        if _embedded(plugin):
            new.register(plugin.name, plugin.loaded)
    return new


def _refilled(harness: Harness, kind: str, before: Registry[Any], same: set[str]) -> Registry[Any]:
    """The registry of the new set, with the old objects of unchanged plugins."""
    fresh = harness.filled(kind)
    result: Registry[Any] = Registry(kind, harness.settings, harness.options)
    for name in fresh.names():
        owner = fresh.owner(name)
        result.plugin = owner or "kernel"
        old = before.get(name) if owner in same and before.owner(name) == owner else None
        result(old if old is not None else fresh.get(name), name)
    result.plugin = "kernel"
    return result


def _tools(session: Session, before: Registry[Any] | None) -> None:
    old = {id(tool): tool for tool in before or ()}
    new = {id(tool): tool for tool in session.harness.tools}
    session.toolbox.withdraw([tool.name for key, tool in old.items() if key not in new])
    session.toolbox.offer([tool for key, tool in new.items() if key not in old])


async def _extensions(session: Session, before: Registry[Any] | None) -> None:
    old = {id(extension): extension for extension in before or ()}
    new = {id(extension): extension for extension in session.harness.extensions}
    gone, come = [e for k, e in old.items() if k not in new], [e for k, e in new.items() if k not in old]
    for method, extensions in (("close", gone), ("open", come)):
        for extension in extensions:
            if getattr(type(extension), method) is not getattr(Extension, method):
                try:
                    await getattr(extension, method)(session)
                except Exception as error:
                    session.notice(f"the extension {extension.name} cannot {method}: {type(error).__name__}: {error}", guard=True)
