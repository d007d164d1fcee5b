"""A composed plugin set: options and settings on one side, registries that plugins filled on the other."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from kernel import installed
from kernel.clock import Clock
from kernel.dispatch import Dispatcher, Outcome
from kernel.errors import UsageError
from kernel.events import Event
from kernel.events.event import PermissionMode
from kernel.merge import Merged
from kernel.options import Options
from kernel.plugins import BY_NAME, Plugin, PluginSet, decide, find
from kernel.policy import NoPolicy, Policy
from kernel.registry import Registry
from kernel.sandbox import Sandbox
from kernel.settings import Settings
from kernel.transcript import EntryStore, MemoryTranscript, Transcript

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.compactor import Compactor
    from kernel.lock import Lock
    from kernel.models import ModelInfo, ModelProvider
    from kernel.session import Session
    from kernel.voice import Emit

MODES: tuple[str, ...] = get_args(PermissionMode)
WIDER_MODES = ("acceptEdits", "bypassPermissions")
DEFAULT_MODEL = "sonnet"
DEFAULT_PROVIDER = "anthropic"
GUARDS = ("hooks",)
"""Settings that guard something and that the kernel leaves to a plugin (``metadata.kernel.enforces``)."""


class Harness:
    """What one process runs with. Sessions are opened from it.

    :param plugins: the plugin set; found and decided from options and settings where it is not given.
    """

    def __init__(self, options: Options | None = None, *, settings: Settings | None = None,
                 plugins: PluginSet | None = None, clock: Clock | None = None) -> None:
        self.options = options or Options()
        self.clock = clock or Clock()
        self.lock = self._entered() if plugins is None else None
        self.settings = settings or Settings.load(
            self.options.cwd, cli=self.options.settings, sources=self.options.setting_sources,
            harness=(self.lock.harness, self.lock.data["settings"]) if self.lock else None)
        os.environ.update(self.settings.environment())
        self.announced: list[str] = []
        self.listeners: list[Callable[[str], None]] = []
        self._chosen: dict[tuple[str, str], Any] = {}
        self.session_type: Callable[..., Session] | None = None
        """Makes conversations in the place of ``Session``, from the same arguments; an extension's ``check`` may set it."""
        if plugins is None:
            found = self._found()
            decide(found, self._blocked(found))
            plugins = PluginSet(found)
        self.plugins = plugins
        self.dispatcher = Dispatcher(plugins.manager)
        self.debug_sink: Callable[[str], None] | None = None
        self.trace_sink: Callable[[Session, Event, list[Outcome], Merged], None] | None = None
        for problem in self.settings.problems:
            self.announce(str(problem))
        for plugin in plugins:
            if plugin.state == "broken" or (plugin.state == "blocked" and BY_NAME not in plugin.errors):
                self._announce_of(plugin, plugin.errors)
            if plugin.source == "inline" and plugin.warnings and plugin.implements:
                self._announce_of(plugin, plugin.warnings)
        for key in GUARDS:
            self._announce_unenforced(key)

    def _announce_unenforced(self, key: str) -> None:
        """A guard that nobody enforces is not silent (decision D5)."""
        if not self.settings.by_layer(key):
            return
        theirs = [p for p in self.plugins if p.manifest and key in p.manifest.kernel.enforces]
        if not any(p.state == "ready" for p in theirs):
            who = ", ".join(f"the plugin {p.name!r} is {p.state}" for p in theirs) or "no plugin that does is installed"
            self.announce(f"{key} are configured, but nothing enforces them ({who}): none of them counts")

    def _entered(self) -> Lock | None:
        if self.options.harness is None:
            return None
        from kernel.lock import enter

        return enter(self.options.harness)

    def _found(self) -> list[Plugin]:
        """All plugins there are; with a locked harness its own, compared with the lock before any of them is used."""
        if self.lock is None:
            return find(self.options.plugin_dirs, installed=installed.enabled(self.settings))
        if self.lock.stale:
            self.announce(f"{self.lock.harness} has changed since {self.lock.path.name} was made; what runs is what is locked "
                          "(kernel harness sync brings both together)")
        self.lock.verify()
        return self.lock.admit(find([*self.lock.plugin_folders(), *self.options.plugin_dirs], [str(self.lock.site)]))

    def _blocked(self, found: list[Plugin]) -> list[str]:
        names = [*self.options.block, *self.settings.blocked(), *(self.lock.data["block"] if self.lock else ())]
        if "all" in names:
            return [p.name for p in found]
        for name in set(names) - {p.name for p in found}:
            self.announce(f"--block {name}: there is no such plugin")
        return names

    # -- registries, filled at first use ----------------------------------------------------------------------------
    def filled(self, kind: str, only: str | None = None) -> Registry[Any]:
        """A new registry of that kind; a plugin that cannot fill it is broken from then on, and announced.

        :param only: load just the plugin that provides this name.
        """
        registry: Registry[Any] = Registry(kind, self.settings, self.options)
        before = {p.name: p.state for p in self.plugins}
        self.plugins.fill(registry, kind, only)
        for plugin in self.plugins:
            if plugin.state == "broken" and before.get(plugin.name) == "ready":
                self._announce_of(plugin, plugin.errors)
        return registry

    @cached_property
    def tools(self) -> Registry[Any]:
        return self.filled("tools")

    @cached_property
    def prompt_parts(self) -> Registry[Any]:
        return self.filled("prompt_parts")

    @cached_property
    def extensions(self) -> Registry[Any]:
        return self.filled("extensions")

    @cached_property
    def validators(self) -> Registry[Any]:
        return self.filled("validators")

    @cached_property
    def compactor(self) -> Compactor | None:
        """Who makes room in the window; ``None``: nobody."""
        found: Compactor | None = self.one("compactors", str(self.settings.own("kernel.compactor") or "summary"))
        return found

    @cached_property
    def middleware(self) -> Registry[Any]:
        return self.filled("middleware")

    def one(self, kind: str, name: str) -> Any | None:
        """The object of that kind and name; only the plugin that provides it is loaded."""
        if (kind, name) not in self._chosen:
            self._chosen[kind, name] = self.filled(kind, name).get(name)
        return self._chosen[kind, name]

    # -- models ----------------------------------------------------------------------------------------------------------
    def choose_model(self, restored: str | None = None) -> tuple[ModelProvider, ModelInfo]:
        """The start model: flag > ``ANTHROPIC_MODEL`` > the resumed session's > setting > default.

        :raises UsageError: no provider serves it.
        """
        setting = self.settings.get("model")
        chosen = (self.options.model or os.environ.get("ANTHROPIC_MODEL") or restored
                  or (setting if isinstance(setting, str) else None) or os.environ.get("ANTHROPIC_DEFAULT_MODEL"))
        return self.provider_of(chosen or DEFAULT_MODEL)

    def provider_of(self, model: str) -> tuple[ModelProvider, ModelInfo]:
        """The provider and the facts of a model. ``provider:model`` names the provider as well.

        Otherwise the provider is the setting ``kernel.provider`` (or ``KERNEL_PROVIDER``), ``anthropic`` by default.

        :raises UsageError: there is no such provider, it serves no such model, or its name is misspelt or stands alone.
        """
        given, colon, rest = model.partition(":")
        chosen = os.environ.get("KERNEL_PROVIDER") or self.settings.own("kernel.provider")
        name = chosen or DEFAULT_PROVIDER
        if rest and self.plugins.provider("models", given) is not None:
            name, model = given, rest
        elif not chosen and given != name:  # names of a chosen provider's models are its own affair
            self._no_mistyped_provider(given, colon + rest)
        provider = self.one("models", str(name))
        if provider is None:
            raise UsageError(f"no plugin provides the model provider {name!r}", context="model",
                             hint=self._why_missing("models", str(name)))
        info = provider.resolve(model)
        if info is None:
            raise UsageError(f"the provider {name!r} does not serve the model {model!r}", context="model",
                             hint="choose another with --model")
        return provider, info

    def providers(self) -> list[str]:
        """Names of the model providers that plugins of this harness bring."""
        return sorted({name for p in self.plugins.ready if p.manifest for name in p.manifest.kernel.provides.get("models", ())})

    def _no_mistyped_provider(self, given: str, rest: str) -> None:
        """What is nearly, or only, a provider's name would be asked of the default provider as a model of its own.

        :raises UsageError: it is; the text says how to write it.
        """
        from difflib import get_close_matches

        if not rest.strip(":") and given in self.providers():
            raise UsageError(f"{given!r} is a provider, and no model of it is named", context="model",
                             hint=f"--model {given}:MODEL")
        near = get_close_matches(given, self.providers(), n=1, cutoff=0.75) if rest else []
        if near:
            raise UsageError(f"no plugin provides the model provider {given!r}", context="model",
                             hint=f"did you mean --model {near[0]}{rest}? Providers are {', '.join(self.providers())}")

    def _why_missing(self, kind: str, name: str) -> str:
        plugin = self.plugins.provider(kind, name)
        if plugin is None:
            return "install a plugin that provides it; kernel plugins list shows what is there"
        return f"the plugin {plugin.name!r} is {plugin.state}: {'; '.join(plugin.errors)}"

    # -- permission modes --------------------------------------------------------------------------------------------------
    def starting_mode(self, restored: str | None = None) -> str:
        """Flag, then the resumed session's (not ``plan`` or ``bypassPermissions``), then the setting, then ``default``."""
        if self.options.permission_mode:
            return self.checked_mode(self.options.permission_mode)
        if restored in MODES and restored not in ("plan", "bypassPermissions"):
            return self._checked_or_default(restored, "the resumed session")
        for layer, value in self.settings.by_layer("permissions.defaultMode"):
            theirs = layer.scope in ("project", "local")
            if value == "auto" and theirs:
                return "default"
            if value in WIDER_MODES and theirs and not self.settings.trusted:
                self.announce(f"Ignoring permissions.defaultMode {value!r} of {layer.path}: this workspace has not been trusted")
                continue
            return self._checked_or_default(value, f"{layer.path}, permissions.defaultMode")
        return "default"

    def _checked_or_default(self, mode: Any, where: str) -> str:
        try:
            return self.checked_mode(str(mode))
        except UsageError as error:
            self.announce(f"{where}: {error.message}")
            return "default"

    def checked_mode(self, mode: str) -> str:
        """The mode under its documented name.

        Whether ``auto`` can be used is for the session's policy to say.

        :raises UsageError: unknown, switched off by settings, or bypass as root outside a sandbox.
        """
        mode = "default" if mode == "manual" else mode
        if mode not in MODES:
            raise UsageError(f"unknown permission mode {mode!r}", context="permission mode", hint=f"one of {', '.join(MODES)}")
        if mode == "bypassPermissions":
            if any(v == "disable" for _, v in self.settings.by_layer("permissions.disableBypassPermissionsMode")):
                raise UsageError("bypassPermissions is switched off by settings", context="permission mode")
            if hasattr(os, "geteuid") and os.geteuid() == 0 and not os.environ.get("IS_SANDBOX"):
                raise UsageError("bypassPermissions is refused for root outside a sandbox", context="permission mode",
                                 hint="set IS_SANDBOX=1 where the machine is a sandbox")
        off = ("permissions.disableAutoMode", "disableAutoMode")
        if mode == "auto" and any(v == "disable" for key in off for _, v in self.settings.by_layer(key)):
            raise UsageError("auto is switched off by settings", context="permission mode")
        return mode

    # -- sessions ----------------------------------------------------------------------------------------------------------
    def open(self, emit: Emit | None = None) -> Session:
        """Open the conversation that the options describe: a new one, or one that is resumed, continued or forked.

        :raises SessionError: it cannot be found or opened.
        :raises UsageError: the model or the permission mode cannot be used.
        """
        from kernel.session import Session

        for extension in self.extensions:
            extension.check(self)
        return (self.session_type or Session)(self, self.open_transcript(self.options), emit or (lambda message: None))

    def fresh_transcript(self, title: str | None = None) -> Transcript:
        """A new conversation beside the one that the options describe (``/clear``)."""
        return self.open_transcript(msgspec.structs.replace(
            self.options, resume=None, continue_session=False, fork_session=False, session_id=None, resume_at=None, name=title,
            extra={k: v for k, v in self.options.extra.items() if k != "resume_drops_turn"}))

    def open_transcript(self, options: Options) -> Transcript:
        """The conversation alone, without a model: for what is done to it and not in it."""
        name = str(self.settings.own("kernel.store") or "files")
        store = self.one("stores", name)
        journal = self.one("stores", "files") if isinstance(store, EntryStore) else None
        opened: Transcript
        if journal is not None:
            opened = journal.open(options, self.settings, store)
            return opened
        if store is not None and not isinstance(store, EntryStore):
            opened = store.open(options, self.settings)
            return opened
        if options.resume or options.continue_session:
            missing = "files" if store is not None else name
            raise UsageError(f"no plugin provides the transcript store {missing!r}, so no session can be resumed",
                             hint=self._why_missing("stores", missing))
        if store is not None:
            self.announce(f"the store {name!r} keeps entries only and needs the store 'files' to make conversations of them; "
                          f"nothing is kept ({self._why_missing('stores', 'files')})")
        return MemoryTranscript(options.session_id or self.clock.new_id())

    def open_policy(self, session: Session) -> Policy:
        name = str(self.settings.own("kernel.policy") or "rules")
        factory = self.one("policies", name)
        if factory is None:
            self.announce(f"no permission policy {name!r}: every tool call is refused ({self._why_missing('policies', name)})")
            return NoPolicy()
        try:
            policy: Policy = factory.open(session)
        except Exception as error:
            self.announce(f"the permission policy {name!r} cannot be opened, so every tool call is refused: "
                          f"{type(error).__name__}: {error}")
            return NoPolicy()
        return policy

    def open_sandbox(self, session: Session) -> Sandbox | None:
        """The sandbox, where settings ask for one.

        :raises UsageError: they do and it cannot work; nothing runs unconfined by accident.
        """
        if not self._asks_for_sandbox():
            return None
        chosen = self.settings.own("kernel.sandbox")  # a name, or an object with one
        name = str((chosen.get("name") if isinstance(chosen, dict) else chosen) or "bubblewrap")
        factory = self.one("sandboxes", name)
        if factory is None:
            raise UsageError(f"sandbox.enabled is set, but no plugin provides the sandbox {name!r}",
                             hint=self._why_missing("sandboxes", name))
        sandbox: Sandbox = factory.open(session)
        return sandbox

    def _asks_for_sandbox(self) -> bool:
        """Any scope may ask for it; an untrusted project cannot switch off what a person asked for.

        :raises UsageError: the value is no Boolean.
        """
        for layer, value in self.settings.by_layer("sandbox.enabled"):
            if not isinstance(value, bool):
                raise UsageError("must be true or false", context=f"{layer.path}, sandbox.enabled")
            if value or self.settings.trusted or layer.scope not in ("project", "local"):
                return value
        return False

    # -- diagnostics ---------------------------------------------------------------------------------------------------------
    def announce(self, text: str) -> None:
        """Something that must not stay unseen: a guard or a source that does not work. Said once."""
        if text not in self.announced:
            self.announced.append(text)
            for listener in self.listeners:
                listener(text)

    def _announce_of(self, plugin: Plugin, problems: list[str]) -> None:
        self.announce(f"plugin {plugin.name}: {'; '.join(problems)}")

    def debug(self, text: str) -> None:
        if self.debug_sink:
            self.debug_sink(text)

    def trace(self, session: Session, event: Event, outcomes: list[Outcome], merged: Merged) -> None:
        if self.trace_sink:
            self.trace_sink(session, event, outcomes, merged)


