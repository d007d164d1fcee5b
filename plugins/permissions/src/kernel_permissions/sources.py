"""Where the rules of a session come from, and which of them count (permissions contract, section 11)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel import Tool, ToolContext

from . import salvage
from .auto import personal
from .facts import Facts
from .policy import RulesPolicy
from .rules import Behavior, Rule, RuleError, RuleSet, Source, faults, split_flag
from .view import RealView

if TYPE_CHECKING:
    from kernel import Layer, Session

BEHAVIORS: tuple[Behavior, ...] = ("allow", "ask", "deny")


class RulesFactory:
    """Registered as the policy ``rules``."""

    name = "rules"

    def open(self, session: Session) -> RulesPolicy:
        from .auto import open_auto
        from .updates import Updates

        sources = Sources(session)
        return SessionPolicy(sources, sources.facts, tools=partial(tool_named, session), apply=Updates(session, sources).apply,
                             complain=sources.warn, auto_mode=open_auto(session))


class SessionPolicy(RulesPolicy):
    """The policy of a conversation, from which that of its subagents comes."""

    def __init__(self, sources: Sources, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._sources = sources

    def for_agent(self, session: Session) -> RulesPolicy:
        from .agents import policy_of

        return policy_of(session, self._sources, self)


class Sources:
    """The facts of one session, made anew when what they rest on has changed.

    ``added``, ``removed`` and ``directories`` are what answers during the session changed.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.home = str(Path.home())
        self.view = RealView(self.home)
        self.cwd = str(session.options.cwd)
        self.started_open = session.state.permission_mode == "bypassPermissions"
        self.added: list[Rule] = []
        self.removed: set[tuple[str, str, str]] = set()
        self.directories: list[str] = []
        self.dropped_directories: set[str] = set()
        self._facts: Facts | None = None
        self._seen: tuple[object, ...] = ()
        self.facts()

    def warn(self, text: str) -> None:
        self.session.harness.announce(text)

    def changed(self) -> None:
        """The next call sees the session's new rules and directories."""
        self._facts = None

    def facts(self) -> Facts:
        session = self.session
        seen = (session.settings, session.settings.layers, session.state.grants)
        if self._facts is None or any(a is not b for a, b in zip(seen, self._seen, strict=True)):
            self._facts, self._seen = self._make(), seen
        return self._facts

    def _make(self) -> Facts:
        session = self.session
        directories = [*map(str, session.options.add_dirs), *self._settings_directories(), *self.directories]
        absolute = [os.path.join(self.cwd, os.path.expanduser(d)) for d in directories]
        return Facts(RuleSet(self._rules()), self.view, self.cwd,
                     tuple(d for d in absolute if d not in self.dropped_directories),
                     own=(str(session.settings.config_dir),), bypass_available=self.bypass_available(),
                     sandboxed=self._sandboxed(), plan_file=self._plan_file,
                     opinion=partial(opinion, session), homes=partial(homes, session),
                     classify_shell=next(iter(personal(session, "autoMode.classifyAllShell")), None) is True,
                     wide=next(iter(personal(session, "kernel.permissions.readOnly")), None) == "wide")

    # -- rules ---------------------------------------------------------------------------------------------------------
    def _rules(self) -> list[Rule]:
        session = self.session
        managed_only = session.settings.managed("allowManagedPermissionRulesOnly") is True
        known = self._provided()
        rules: list[Rule] = []
        for behavior in BEHAVIORS:
            for layer, texts in session.settings.by_layer(f"permissions.{behavior}"):
                texts = [t for t in texts if isinstance(t, str)] if isinstance(texts, list) else []
                if managed_only and layer.scope != "managed":
                    continue
                if behavior == "allow" and texts and not self.trusts(layer):
                    self._untrusted(len(texts), "permissions.allow", layer)
                    continue
                where = f"{layer.path}, permissions.{behavior}"
                rules += self._read(texts, behavior, layer.scope, layer.directory, where, known)
        rules += self._own_outputs()
        if managed_only:
            return rules
        rules += self._salvaged(known)
        options = session.options
        rules += self._read(split_flag(options.allowed_tools), "allow", "cli", self.cwd, "--allowedTools", known)
        rules += self._read(split_flag(options.disallowed_tools), "deny", "cli", self.cwd, "--disallowedTools", known)
        rules += self.granted(session.state.grants)
        rules += self.added
        return [r for r in rules if (r.source, r.behavior, r.text) not in self.removed or r in self.added]

    def granted(self, grants: tuple[str, ...]) -> list[Rule]:
        """The rules of grants that a context has from skills; none where managed rules alone count."""
        if self.session.settings.managed("allowManagedPermissionRulesOnly") is True:
            return []
        return self._read(grants, "allow", "skill", self.cwd, "a skill's allowed-tools", self._provided())

    def _provided(self) -> set[str]:
        """Tools that plugins bring by their manifests."""
        manifests = [plugin.manifest for plugin in self.session.plugins if plugin.manifest]
        return {name for manifest in manifests for name in manifest.kernel.provides.get("tools", ())}

    def _salvaged(self, known: set[str]) -> list[Rule]:
        """Deny and ask rules of settings files that were set aside as a whole."""
        settings = self.session.settings
        rules: list[Rule] = []
        for path in salvage.broken_files(settings) if settings.problems else ():
            text = salvage.read(path)
            mine = path.parent == settings.config_dir
            source: Source = "user" if mine else "local" if path.name == "settings.local.json" else "project"
            directory = str(path.parent) if mine else self.cwd
            for behavior in salvage.GUARDS:
                found = salvage.guards(text, behavior)
                if found:
                    self.warn(f"{path}: the file is set aside, but its {behavior} rules still count: {', '.join(found)[:300]}")
                rules += self._read(found, behavior, source, directory, f"{path}, permissions.{behavior}", known)
        return rules

    def _own_outputs(self) -> list[Rule]:
        """Reading what this session itself saved (long outputs, background commands) needs no permission (context, 7)."""
        if not self.session.transcript.path:
            return []
        folder = os.path.splitext(self.session.transcript.path)[0]
        literal = "".join(f"\\{c}" if c in "*?[]\\()" else c for c in folder)
        return self._read([f"Read(/{literal}/**)"], "allow", "session", self.cwd, "the session's own folder", set())

    def _read(self, texts: Iterable[str], behavior: Behavior, source: Source, directory: str, where: str,
              known: set[str]) -> list[Rule]:
        """The rules that can be read; the others are named and skipped."""
        rules: list[Rule] = []
        for text in texts:
            if not text.strip():
                continue
            try:
                rule = Rule(text, behavior, source, "/" if source == "managed" else directory, where)
            except RuleError as error:
                self.warn(f"{where}: the rule {text!r} is skipped: {error}")
                continue
            fault, counts = faults(rule, known)
            if fault:
                self.warn(f"{where}: the rule {text!r}{'' if counts else ' is skipped'}: {fault}")
            if counts:
                rules.append(rule)
        return rules

    # -- trust ---------------------------------------------------------------------------------------------------------
    def trusts(self, layer: Layer) -> bool:
        """Whether what widens rights in this file counts: a project's file needs trust, a local one where it is shared."""
        if self.session.settings.trusted or layer.scope not in ("project", "local"):
            return True
        return layer.scope == "local" and not _shared(Path(layer.path))

    def _untrusted(self, count: int, key: str, layer: Layer) -> None:
        entries = "entry" if count == 1 else "entries"
        self.warn(f"Ignoring {count} {key} {entries} from {layer.path}: this workspace has not been trusted "
                  "(hasTrustDialogAccepted of the folder in ~/.claude.json).")

    def _settings_directories(self) -> list[str]:
        found: list[str] = []
        for layer, values in self.session.settings.by_layer("permissions.additionalDirectories"):
            values = [v for v in values if isinstance(v, str) and v] if isinstance(values, list) else []
            if values and not self.trusts(layer):
                self._untrusted(len(values), "permissions.additionalDirectories", layer)
            elif layer.scope != "managed":
                found += [os.path.join(layer.directory, os.path.expanduser(v)) for v in values]
            else:
                found += values
        return found

    # -- modes and other plugins ---------------------------------------------------------------------------------------
    def bypass_available(self) -> bool:
        settings = self.session.settings
        switched_off = any(v == "disable" for _, v in settings.by_layer("permissions.disableBypassPermissionsMode"))
        return (self.session.options.allow_bypass or self.started_open) and not switched_off

    def _sandboxed(self) -> Callable[[Mapping[str, Any]], bool] | None:
        """Whether the session's sandbox would confine a command; ``None`` where that does not stand in for a question."""
        sandbox = self.session.sandbox
        if sandbox is None or self.session.settings.get("sandbox.autoAllowBashIfSandboxed") is False:
            return None
        return lambda input: sandbox.confines(dict(input)) is True

    def _plan_file(self, path: str) -> bool:
        given = self.session.plan_file
        if given is not None:
            return path == str(given)
        folder, name = os.path.split(path)
        return folder == str(self.session.settings.config_dir / "plans") and name.endswith(".md")


def tool_named(session: Session, name: str) -> Tool | None:
    """A tool of the session by its name or an old name."""
    found: Tool | None = session.toolbox.by_name.get(name)
    return found


def opinion(session: Session, tool: Tool, input: dict[str, Any]) -> str | None:
    """What a tool itself says to a call; ``None``: it has no opinion of its own."""
    if type(tool).check_permissions is Tool.check_permissions:
        return None
    return tool.check_permissions(input, ToolContext(session, "", tool.name))


FOLDERS = "permissions.folders"
"""Where plugins put folders that a context may keep notes in although they are protected: absolute paths in
``session.plugin_state[FOLDERS]``. Rules and modes still decide about what happens there."""


def homes(session: Session) -> tuple[str, ...]:
    found = session.plugin_state.get(FOLDERS, ())
    return tuple(os.path.realpath(f) for f in found if isinstance(f, str) and os.path.isabs(f))


def _shared(path: Path) -> bool:
    """Whether a local settings file may have come with the repository: tracked by git, or behind a linked ``.claude``.

    Git is not run: its index names every tracked path. What cannot be read counts as shared.
    """
    from kernel import git_root

    if path.parent.is_symlink() or path.is_symlink():
        return True
    root = git_root(path.parent)
    if root is None:
        return False
    place = root / ".git"
    try:
        if place.is_file():
            place = (root / place.read_text("utf-8", "replace").partition("gitdir:")[2].strip())
        index = (place / "index").read_bytes()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    # version 4 of the index leaves out what a name shares with the one before it
    return (b"local.json" if index[4:8] == b"\0\0\0\4" else b".claude/settings.local.json") in index
