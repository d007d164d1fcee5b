"""Find plugins, decide which take part, load their code at first use.

1. *Find*: folders named on the command line, installed distributions with an entry point in the group ``kernel.plugins``,
   and installed folders that settings switch on (``installed.py``). Only metadata and manifests are read.
2. *Decide*: blocked ones, broken ones and dependents of either stay out, with a reason.
3. *Load*: each plugin is represented by a stand-in with one function per hook that its manifest names; the module is
   imported when one of them is first called, and checked against the hookspecs then.

A plugin that cannot be used is listed with what is wrong; it never ends the run. Where it is a gate, its hook raises
and the dispatcher refuses (decision D5).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pluggy
from msgspec import Struct, field

from kernel import __version__, discover, hookspecs, manifest
from kernel.errors import KernelError, LoadError
from kernel.events import EVENTS, snake
from kernel.registry import Registry

BY_NAME = "blocked by name"

_places: set[str] = set()  # of installed plugins: on sys.path once one was loaded, and only for those who switched it on

Source = Literal["distribution", "inline", "installed"]


class Plugin(Struct, kw_only=True):
    """One plugin that was found.

    ``module`` is the entry point's value (``None``: the folder has no Python part that is installed); ``source`` is
    ``distribution`` for an installed package, ``inline`` for ``--plugin-dir`` and ``installed`` for a folder that settings
    switch on, whose id is ``key`` and whose module needs ``path`` on the import path. ``state`` is ``ready``, ``blocked`` or
    ``broken``; ``errors`` say why.
    """

    name: str
    root: Path
    source: Source
    manifest: manifest.Manifest | None = None
    module: str | None = None
    path: list[str] = field(default_factory=list)
    key: str = ""
    distribution: str | None = None
    version: str = ""
    state: Literal["ready", "blocked", "broken"] = "ready"
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    loaded: Any = None
    failure: LoadError | None = None

    @property
    def id(self) -> str:
        """The public plugin id, ``name@source`` (plugins contract, section 1)."""
        return self.key or f"{self.name}@{'inline' if self.source == 'inline' else 'installed'}"

    @property
    def implements(self) -> list[str]:
        """The hooks that its Python part implements, by its manifest."""
        return self.manifest.kernel.implements if self.manifest else []

    def row(self) -> dict[str, Any]:
        """What there is to say of it, as plain data: the row of ``kernel plugins list --json``."""
        part = self.manifest.kernel if self.manifest else None
        return {"name": self.name, "version": self.version, "state": self.state, "source": self.source, "path": str(self.root),
                "description": self.manifest.description if self.manifest else None,
                "hooks": self.implements, "provides": part.provides if part else {},
                "capabilities": part.capabilities if part else {}, "errors": self.errors, "warnings": self.warnings}

    @classmethod
    def at(cls, root: Path, source: Source, *, module: str | None = None, path: Iterable[str] = (), key: str = "",
           version: str = "") -> Plugin:
        """The plugin of a folder, as its manifest describes it; ``broken`` where that cannot be read."""
        name = key.partition("@")[0] or root.name
        return _describe(cls(name=name, root=root, source=source, module=module, path=list(path), key=key, version=version))

    def load(self) -> Any:
        """Import its module now. :raises LoadError: it cannot be imported or its hooks do not fit."""
        return load(self)

    def leave(self, state: Literal["blocked", "broken"], reason: str) -> None:
        self.state = state
        self.errors.append(reason)


# -- find ------------------------------------------------------------------------------------------------------------
def find(folders: Iterable[Path] = (), path: Iterable[str] | None = None, installed: Iterable[Plugin] = ()) -> list[Plugin]:
    """All plugins, sorted by name. A folder given explicitly hides an installed plugin of the same name.

    :param path: import path to scan, ``sys.path`` by default.
    :param installed: what settings switch on; a distribution of the same name hides it, and it says so.
    """
    found: dict[str, Plugin] = {}
    installed = list(installed)
    _places.update(place for plugin in installed for place in plugin.path)
    for folder in folders:
        plugin = Plugin.at(folder.resolve(), "inline")
        if found.setdefault(plugin.name, plugin) is not plugin:
            plugin.leave("broken", f"{folder}: another folder already gives the plugin {plugin.name!r}")
            found[f"{plugin.name} ({folder})"] = plugin
    for plugin in _distributions(p for p in (sys.path if path is None else path) if p not in _places):
        other = found.setdefault(plugin.name, plugin)
        if other is not plugin and other.source == "distribution":
            plugin.leave("broken", f"the distribution {other.distribution} already gives the plugin {plugin.name!r}; "
                                   f"uninstall it or {plugin.distribution}")
            found[f"{plugin.name} ({plugin.distribution})"] = plugin
    for plugin in installed:
        other = found.setdefault(plugin.name, plugin)
        if other is not plugin and other.source != "inline":
            plugin.leave("broken", f"{other.distribution or other.id} already gives the plugin {plugin.name!r}; "
                                   f"kernel plugins disable {plugin.id}")
            found[f"{plugin.name} ({plugin.id})"] = plugin
    return sorted(found.values(), key=lambda p: p.name)


def _describe(plugin: Plugin) -> Plugin:
    """Read the manifest; its name and version count."""
    if plugin.source == "distribution" and not (plugin.root / manifest.PLACE).is_file():
        plugin.leave("broken", f"there is no {manifest.PLACE} in {plugin.root}: the wheel must carry the manifest in the package "
                               "folder (docs/plugins.md shows how)")
        return plugin
    read = manifest.read(plugin.root)
    plugin.warnings += read.warnings
    if read.manifest is None:
        plugin.leave("broken", "; ".join(read.errors))
        return plugin
    plugin.manifest = read.manifest
    part = read.manifest.kernel
    if "*" in part.implements:
        part.implements = [*(name for name in part.implements if name != "*"), *map(snake, EVENTS)]
    plugin.version = read.manifest.version or plugin.version
    if plugin.source == "distribution" and plugin.name != read.manifest.name:
        plugin.leave("broken", f"the entry point is named {plugin.name!r}, the manifest {read.manifest.name!r}: "
                               "they must agree")
    plugin.name = read.manifest.name
    return plugin


def _distributions(path: Iterable[str]) -> Iterable[Plugin]:
    for found in discover.scan(path):
        yield _describe(Plugin(name=found.name, root=Path(found.root), source="distribution", module=found.module,
                               distribution=found.distribution, version=found.version))


# -- decide ------------------------------------------------------------------------------------------------------------
def decide(plugins: list[Plugin], blocked: Iterable[str]) -> None:
    """Set the state of each plugin: blocked by name, out of its kernel range, or without what it depends on."""
    names = {name for name in blocked if isinstance(name, str)}
    for plugin in plugins:
        if plugin.name in names:
            plugin.leave("blocked", BY_NAME)
        elif plugin.manifest and not manifest.in_range(__version__, plugin.manifest.kernel.requires):
            plugin.leave("broken", f"needs kernel {plugin.manifest.kernel.requires}, this is {__version__}")
    _leave_dependents(plugins)


def _leave_dependents(plugins: list[Plugin]) -> None:
    ready = {p.name for p in plugins if p.state == "ready"}
    changed = True
    while changed:
        changed = False
        for plugin in plugins:
            missing = [d for d in (plugin.manifest.kernel.dependencies if plugin.manifest else ()) if d not in ready]
            if plugin.state == "ready" and missing:
                plugin.leave("blocked", f"needs the plugin {missing[0]!r}, which is not available")
                ready.discard(plugin.name)
                changed = True


# -- load --------------------------------------------------------------------------------------------------------------
_SPECS = {name: f.__code__.co_varnames[:f.__code__.co_argcount] for name, f in vars(hookspecs).items()
          if getattr(f, "kernel_spec", None) is not None}
"""Hook name -> its argument names."""
_GATES = frozenset(snake(name) for name, event in EVENTS.items() if event.gate)


class PluginSet:
    """The plugins of one harness, behind a pluggy manager that knows stand-ins only."""

    def __init__(self, plugins: list[Plugin]) -> None:
        self.plugins = plugins
        self.manager = pluggy.PluginManager("kernel")
        self.manager.add_hookspecs(hookspecs)
        # pluggy calls the last registered first; registering backwards makes the call order the order of names.
        for plugin in plugins:
            _check_names(plugin)
        _leave_dependents(plugins)
        for plugin in reversed(plugins):
            if plugin.state == "ready" and plugin.module:
                self._stand_in(plugin, plugin.implements)
            elif plugin.state == "broken" and plugin.source != "inline" and plugin.manifest and plugin.module:
                # A gate whose plugin cannot be used refuses, as one that cannot be loaded does; blocking the plugin ends that.
                plugin.failure = LoadError(plugin.name, "; ".join(plugin.errors),
                                           hint=f"mend it, or leave it out with --block {plugin.name}")
                self._stand_in(plugin, [name for name in plugin.implements if name in _GATES])
            elif plugin.state == "ready" and plugin.implements:
                plugin.warnings.append("its Python part is not installed, so its hooks do not run "
                                       f"(pip install {plugin.root})")
        self.manager.check_pending()

    def __iter__(self) -> Any:
        return iter(self.plugins)

    def get(self, name: str) -> Plugin | None:
        return next((p for p in self.plugins if p.name == name), None)

    @property
    def ready(self) -> list[Plugin]:
        return [p for p in self.plugins if p.state == "ready"]

    def register(self, name: str, module: object) -> None:
        """Add hooks of a Python program that embeds the kernel; nothing is lazy about them.

        :raises LoadError: the object's hooks do not fit the hookspecs.
        """
        plugin = Plugin(name=name, root=Path.cwd(), source="inline", manifest=manifest.Manifest(name=name), loaded=module)
        _check(plugin, module, implements=None)
        self.plugins.append(plugin)
        self.manager.register(module, name=name)
        # It came last, so pluggy would call it first: those whose names come before it are put behind it again.
        for other, plugged in sorted(self.manager.list_name_plugin(), reverse=True, key=lambda item: item[0]):
            if other < name:
                self.manager.unregister(name=other)
                self.manager.register(plugged, name=other)

    def _stand_in(self, plugin: Plugin, names: list[str]) -> None:
        hooks = {name: hookspecs.hookimpl(_deferred(plugin, name)) for name in names}
        if hooks:  # pluggy takes two empty namespaces for the same plugin
            self.manager.register(SimpleNamespace(**hooks), name=plugin.name)

    def fill(self, registry: Registry[Any], kind: str, only: str | None = None) -> None:
        """Call ``register_<kind>`` of the plugins that provide that kind, in order of names.

        :param only: load just the plugin whose manifest provides this name; the others stay untouched.
        """
        for implementation in reversed(getattr(self.manager.hook, f"register_{kind}").get_hookimpls()):
            plugin = self.get(implementation.plugin_name)
            if plugin is None or plugin.state != "ready":
                continue
            provides = plugin.manifest.kernel.provides.get(kind) if plugin.manifest else None
            if only is not None and provides is not None and only not in provides:
                continue
            registry.plugin = plugin.name
            before = set(registry.names())
            try:
                implementation.function(registry)
            except LoadError:
                pass  # said by load()
            except KernelError as error:
                plugin.leave("broken", str(error))
            except (Exception, SystemExit) as error:
                plugin.leave("broken", f"register_{kind} raised {type(error).__name__}: {error}")
            else:
                undeclared = set(registry.names()) - before - set(provides or ())
                if undeclared and plugin.manifest is not None and plugin.module:
                    plugin.warnings.append(f"registers {', '.join(sorted(undeclared))}, which "
                                           f"metadata.kernel.provides.{kind} does not name")
            finally:
                registry.plugin = "kernel"

    def provider(self, kind: str, name: str) -> Plugin | None:
        """The plugin whose manifest provides that name, whatever its state."""
        return next((p for p in self.plugins if p.manifest and name in p.manifest.kernel.provides.get(kind, ())), None)


def _check_names(plugin: Plugin) -> None:
    unknown = [h for h in plugin.implements if h not in _SPECS]
    if unknown and plugin.state == "ready":
        plugin.leave("broken", f"{plugin.root / manifest.PLACE}, metadata.kernel.implements: "
                               f"there is no hook {unknown[0]!r}{_nearest(unknown[0])}")


def _deferred(plugin: Plugin, hook: str) -> Callable[..., Any]:
    """A function with the hook's arguments that loads the plugin when it is first called."""
    target: list[Callable[..., Any]] = []

    def resolve() -> Callable[..., Any]:
        function = getattr(load(plugin), hook)
        takes = tuple(inspect.signature(function).parameters)
        target.append(function if takes == _SPECS[hook] else lambda *args: function(
            **{k: v for k, v in zip(_SPECS[hook], args, strict=True) if k in takes}))
        return target[0]

    if hook.startswith("register_"):
        def register_hook(register: Any) -> Any:
            return (target[0] if target else resolve())(register)
        return register_hook

    def lifecycle_hook(event: Any, session: Any) -> Any:
        return (target[0] if target else resolve())(event, session)
    return lifecycle_hook


def load(plugin: Plugin) -> Any:
    """The plugin's module, imported once.

    :raises LoadError: it cannot be imported or its hooks do not fit; the same error every time.
    """
    if plugin.loaded is None:
        if plugin.failure is None:
            try:
                assert plugin.module is not None
                # behind what is there already: no plugin replaces a module of the environment
                sys.path.extend(place for place in plugin.path if place not in sys.path)
                module = import_module(plugin.module)
                _check(plugin, module, implements=plugin.implements)
                plugin.loaded = module
                return module
            except LoadError as error:
                plugin.failure = error
            except (Exception, SystemExit) as error:
                plugin.failure = LoadError(plugin.name, f"cannot be imported: {type(error).__name__}: {error}",
                                           context=f"module {plugin.module}", hint="kernel doctor shows all plugins")
            plugin.leave("broken", f"{plugin.failure.context.partition(', ')[2]}: {plugin.failure.message}")
        raise plugin.failure
    return plugin.loaded


def _check(plugin: Plugin, module: object, implements: list[str] | None) -> None:
    """Compare the module's marked functions with the hookspecs and the manifest."""
    marked = {name: f for name in dir(module)
              if not name.startswith("__") and getattr(f := getattr(module, name), "kernel_impl", None) is not None}
    for name, function in marked.items():
        if name not in _SPECS:
            raise LoadError(plugin.name, f"there is no hook {name!r}{_nearest(name)}", context=f"module {plugin.module}")
        wrong = [a for a in inspect.signature(function).parameters if a not in _SPECS[name] and a != "self"]
        if wrong:
            raise LoadError(plugin.name, f"hook {name} has no argument {wrong[0]!r}; it may take {', '.join(_SPECS[name])}",
                            context=f"module {plugin.module}")
        annotation = inspect.signature(function).parameters.get("event")
        expected = "".join(part.capitalize() for part in name.split("_"))
        if annotation is not None and annotation.annotation is not inspect.Parameter.empty:
            given = annotation.annotation
            given = given if isinstance(given, str) else getattr(given, "__name__", str(given))
            if given.strip("'\"").rsplit(".", 1)[-1] not in (expected, "Event", "Any"):
                raise LoadError(plugin.name, f"hook {name} takes a {expected}, but its annotation says {given}",
                                context=f"module {plugin.module}")
    if implements is None:
        return
    undeclared, absent = set(marked) - set(implements), set(implements) - set(marked)
    if undeclared or absent:
        what = f"implements {min(undeclared)}, which its manifest does not name" if undeclared else \
            f"does not implement {min(absent)}, which its manifest names"
        raise LoadError(plugin.name, what, context=f"module {plugin.module}",
                        hint=f"metadata.kernel.implements of {manifest.PLACE} must list its hooks")


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, _SPECS, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
