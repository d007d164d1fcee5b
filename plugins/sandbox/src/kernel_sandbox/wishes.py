"""What settings and permission rules ask of the sandbox (settings contract, 5.3 and 6; permissions contract, 10 and 11).

Two kinds of values, read with opposite care. What *narrows* counts from everywhere, and where it cannot be read the run
does not start. What *widens* counts from a project's files only once the project is trusted, and is dropped where it
cannot be read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kernel import UsageError
from kernel_sandbox.domains import Domains, parse_all
from kernel_sandbox.patterns import Pattern, absolute, of_path, of_rule

if TYPE_CHECKING:
    from kernel import Layer, Session

_RULE = re.compile(r"\s*(Read|Edit|WebFetch)\s*\((.*)\)\s*", re.DOTALL)
_PARAMETER = re.compile(r"\s*(offset|limit|pages|old_string|new_string|replace_all|prompt)\s*:")
_NO_EFFECT = ("allowLocalBinding", "allowMachLookup", "allowUnixSockets", "enableWeakerNetworkIsolation", "httpProxyPort",
              "socksProxyPort")
_NOT_ENFORCED = ("tlsTerminate",)


class Wishes(Struct, frozen=True, kw_only=True):
    """Paths are absolute, as they are spelt.

    ``work``: the working directories. ``write``, ``show``: what ``allowWrite`` and ``allowRead`` open. ``no_write``,
    ``no_read``: patterns of the settings; ``sealed``, ``fixed``: those of Read and Edit deny rules, which nothing opens.
    ``everything``: no file is protected. ``hide``: variables that are taken away. ``excluded``: rules for commands that
    run outside; ``escape``: whether a call may ask to. ``nested``: weaker, so that it works inside a container.
    """

    work: tuple[str, ...]
    write: tuple[str, ...] = ()
    show: tuple[str, ...] = ()
    no_write: tuple[Pattern, ...] = ()
    no_read: tuple[Pattern, ...] = ()
    sealed: tuple[Pattern, ...] = ()
    fixed: tuple[Pattern, ...] = ()
    everything: bool = False
    domains: Domains = Domains()
    unix_sockets: bool = False
    hide: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    escape: bool = True
    hooks: bool = False
    nested: bool = False


def tolerated(session: Session) -> bool:
    """Whether the run goes on unconfined where the sandbox cannot work: only if a person or an administrator said so.

    A ``true`` of a higher scope counts first; a ``false`` from anywhere else counts for nothing.
    """
    for layer, value in session.settings.by_layer("sandbox.failIfUnavailable"):
        if value is not False:
            return False
        if layer.scope in ("managed", "user"):
            return True
    return False


def read(session: Session, added: Iterable[str] = (), *, cwd: str | None = None) -> Wishes:
    """Everything that is asked for.

    :param added: directories that were added while the session runs.
    :param cwd: where the shell stands; deny rules without an anchor hold from there and from the start directory.
    :raises UsageError: a boundary cannot be read.
    """
    return _Reader(session, cwd or session.project_root).wishes(added)


class _Reader:
    def __init__(self, session: Session, cwd: str) -> None:
        self.session = session
        self.settings = session.settings
        self.start = session.project_root
        self.bases = tuple(dict.fromkeys((self.start, cwd)))
        self.home = str(Path.home())
        self.managed_reads = self._lock("sandbox.filesystem.allowManagedReadPathsOnly")
        self.managed_domains = self._lock("sandbox.network.allowManagedDomainsOnly")
        self.managed_rules = bool(self.settings.managed("allowManagedPermissionRulesOnly"))

    def wishes(self, added: Iterable[str]) -> Wishes:
        self._mention()
        rules = list(self._rules())
        return Wishes(
            work=tuple(dict.fromkeys([self.start, *self._added_directories(), *added])),
            write=self._paths("sandbox.filesystem.allowWrite"),
            show=self._paths("sandbox.filesystem.allowRead", managed=self.managed_reads),
            no_write=self._denied("sandbox.filesystem.denyWrite"),
            no_read=(*self._denied("sandbox.filesystem.denyRead"), *self._credential_files()),
            sealed=tuple(p for tool, p in rules if tool == "Read"),
            fixed=tuple(p for tool, p in rules if tool == "Edit"),
            everything=self._flag("sandbox.filesystem.disabled", default=False, strict=False, scopes=("user", "managed")),
            domains=self._domains(),
            unix_sockets=self._flag("sandbox.network.allowAllUnixSockets", default=False, strict=False),
            hide=self._credential_variables(),
            excluded=tuple(text for _, text in self._texts("sandbox.excludedCommands", widens=True)),
            escape=self._flag("sandbox.allowUnsandboxedCommands", default=True, strict=False),
            hooks=self._flag("kernel.sandbox.hooks", default=False, strict=True),
            nested=self._flag("sandbox.enableWeakerNestedSandbox", default=False, strict=False))

    # -- values --------------------------------------------------------------------------------------------------------
    def trusts(self, layer: Layer) -> bool:
        return self.settings.trusted or layer.scope not in ("project", "local")

    def _warn(self, text: str) -> None:
        self.session.harness.announce(text)

    def _texts(self, key: str, *, widens: bool, managed: bool = False) -> Iterator[tuple[Layer, str]]:
        """The texts of a list in every layer that counts.

        :param managed: only the managed layer counts.
        :raises UsageError: it narrows and is no list.
        """
        for layer, value in self.settings.by_layer(key):
            if managed and layer.scope != "managed":
                continue
            if not isinstance(value, list):
                if not widens:
                    raise UsageError("must be a list of strings; a boundary that cannot be read is none",
                                     context=f"{layer.path}, {key}", hint="correct it, or take it out")
                self._warn(f"{layer.path}, {key}: must be a list of strings; it is dropped")
                continue
            texts = [v for v in value if isinstance(v, str) and v.strip() and "\0" not in v]
            if len(texts) != len(value):
                self._warn(f"{layer.path}, {key}: must be a list of strings; the other entries are dropped")
            if widens and texts and not self.trusts(layer):
                self._untrusted(key, layer, len(texts))
                continue
            yield from ((layer, text.strip()) for text in texts)

    def _untrusted(self, key: str, layer: Layer, count: int) -> None:
        entries = "entry" if count == 1 else "entries"
        self._warn(f"Ignoring {count} {key} {entries} from {layer.path}: this workspace has not been trusted.")

    def _flag(self, key: str, *, default: bool, strict: bool, scopes: tuple[str, ...] = ()) -> bool:
        """The value of the highest layer that counts; what is no Boolean is read as the strict value."""
        for layer, value in self.settings.by_layer(key):
            if scopes and layer.scope not in scopes:
                continue
            if not isinstance(value, bool):
                self._warn(f"{layer.path}, {key}: must be true or false; {str(strict).lower()} is assumed")
                return strict
            if value != strict and not self.trusts(layer):
                if value != default:
                    self._untrusted(key, layer, 1)
                continue
            return value
        return default

    def _lock(self, key: str) -> bool:
        """A switch of the administrator; whatever is not plainly off is on."""
        value = self.settings.managed(key)
        return value is not None and value is not False

    # -- files ---------------------------------------------------------------------------------------------------------
    def _added_directories(self) -> list[str]:
        found = [str(d) for d in self.session.options.add_dirs]
        for layer, values in self.settings.by_layer("permissions.additionalDirectories"):
            if self.trusts(layer) and isinstance(values, list):  # the policy says what it ignores
                found += [os.path.join(layer.directory, os.path.expanduser(v)) for v in values if isinstance(v, str) and v]
        return [os.path.join(self.start, d) for d in found]

    def _paths(self, key: str, *, managed: bool = False) -> tuple[str, ...]:
        from glob import glob

        found: list[str] = []
        for layer, text in self._texts(key, widens=True, managed=managed):
            if text.startswith("~") and text != "~" and not text.startswith("~/"):
                self._warn(f"{layer.path}, {key}: {text!r} is dropped: '~' stands for your own home directory only")
                continue
            path = absolute(re.sub(r"(/\*\*)+/?$", "", text) or "/", home=self.home, directory=layer.directory)
            found += sorted(glob(path)) if any(c in path for c in "*?[") else [path]
        return tuple(dict.fromkeys(found))

    def _denied(self, key: str) -> tuple[Pattern, ...]:
        return tuple(pattern for layer, text in self._texts(key, widens=False)
                     for pattern in of_path(text, home=self.home, directory=layer.directory, origin=f"{layer.path}, {key}"))

    def _rules(self) -> Iterator[tuple[str, Pattern]]:
        """The patterns of Read and Edit deny rules."""
        for tool, specifier, directory, origin in self._rule_texts("deny"):
            if tool == "WebFetch" or specifier.startswith("!"):
                continue
            where = f"{tool} deny rule, {origin}"
            for base in self.bases:
                yield tool, of_rule(specifier, cwd=base, home=self.home, directory=directory, origin=where)

    def _rule_texts(self, behavior: str) -> Iterator[tuple[str, str, str, str]]:
        """Tool, specifier, directory and origin of every rule in force that names paths or hosts."""
        for layer, values in self.settings.by_layer(f"permissions.{behavior}"):
            if self.managed_rules and layer.scope != "managed":
                continue
            if behavior == "allow" and not self.trusts(layer):
                continue
            for text in values if isinstance(values, list) else ():
                if isinstance(text, str):
                    yield from _parsed(text, layer.directory, layer.path)
        if not self.managed_rules:
            options = self.session.options
            for value in options.disallowed_tools if behavior == "deny" else options.allowed_tools:
                for text in _split(value):
                    yield from _parsed(text, self.start, "the command line")

    # -- credentials ---------------------------------------------------------------------------------------------------
    def _credentials(self, key: str, name: str) -> Iterator[tuple[Layer, str]]:
        """What is named in a list of ``{name, mode}``; whatever the mode, it is kept from commands."""
        for layer, value in self.settings.by_layer(f"sandbox.credentials.{key}"):
            if not isinstance(value, list):
                raise UsageError("must be a list of objects", context=f"{layer.path}, sandbox.credentials.{key}")
            for entry in value:
                given = entry.get(name) if isinstance(entry, dict) else entry
                if isinstance(given, str) and given.strip() and "\0" not in given:
                    yield layer, given.strip()
                else:
                    self._warn(f"{layer.path}, sandbox.credentials.{key}: an entry without a {name!r} is dropped")

    def _credential_files(self) -> tuple[Pattern, ...]:
        return tuple(pattern for layer, text in self._credentials("files", "path") for pattern in of_path(
            text, home=self.home, directory=layer.directory, origin=f"{layer.path}, sandbox.credentials.files"))

    def _credential_variables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text for _, text in self._credentials("envVars", "name") if "=" not in text))

    # -- network -------------------------------------------------------------------------------------------------------
    def _domains(self) -> Domains:
        key = "sandbox.network.allowedDomains"
        allowed = [text for _, text in self._texts(key, widens=True, managed=self.managed_domains)]
        if not self.managed_domains:
            allowed += self._fetched("allow")
        denied_key = "sandbox.network.deniedDomains"
        denied = [*(text for _, text in self._texts(denied_key, widens=False)), *self._fetched("deny")]
        good, problems = parse_all(allowed)
        for problem in problems:
            self._warn(f"settings, {key}: {problem}; it is dropped")
        bad, problems = parse_all(denied)
        if problems:
            raise UsageError(f"{problems[0]}; a denial that cannot be read would deny nothing", context=f"settings, {denied_key}",
                             hint="write a host, or '*.domain'")
        return Domains(good, bad)

    def _fetched(self, behavior: str) -> list[str]:
        """Hosts of WebFetch rules."""
        found: list[str] = []
        for tool, specifier, _, _ in self._rule_texts(behavior):
            key, _, host = specifier.partition(":")
            host = host.strip()
            if tool == "WebFetch" and key.strip() == "domain" and (behavior == "deny" or host != "*"):
                found.append(host)
        return [host for host in found if not parse_all([host])[1]]  # the policy says which rules it cannot read

    # -- what does nothing here ----------------------------------------------------------------------------------------
    def _mention(self) -> None:
        network: Any = self.settings.get("sandbox.network")
        if not isinstance(network, dict):
            return
        for name in _NOT_ENFORCED:
            if network.get(name) not in (None, False):
                self._warn(f"settings, sandbox.network.{name}: is not enforced by this sandbox")
        for name in _NO_EFFECT:
            if network.get(name) not in (None, False):
                self.session.debug(f"sandbox: sandbox.network.{name} has no effect here")


def _parsed(text: str, directory: str, origin: str) -> Iterator[tuple[str, str, str, str]]:
    """The rule, if it is one about paths or hosts."""
    rule = _RULE.fullmatch(text)
    if rule is None:
        return
    tool, specifier = rule[1], re.sub(r"\\([()\\])", r"\1", rule[2].strip())
    if specifier not in ("", "*") and not (tool != "WebFetch" and _PARAMETER.match(specifier)):
        yield tool, specifier, directory, origin


def _split(flag: str) -> Iterator[str]:
    """The rules of a flag: commas and blanks outside of parentheses separate them."""
    depth = begin = 0
    for i, c in enumerate(flag):
        depth = max(0, depth + (c == "(") - (c == ")"))
        if c in ", \t\n" and not depth:
            yield flag[begin:i]
            begin = i + 1
    yield flag[begin:]
