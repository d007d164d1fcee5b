"""``kernel permissions lint``: rules of every scope that are shadowed, dead, or do something else than they look like.

Each check is a generator of findings about one rule, in ``checks.py`` and ``cover.py``; here the rules are collected.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..rules import Behavior, Rule, RuleError, faults
from ..sources import BEHAVIORS
from .desk import Desk
from .files import Place, find_rule, shown

Severity = Literal["error", "warning", "info"]
"""``error``: a guard that does not guard, or a rule that does nothing. ``warning``: it does something else than it looks
like. ``info``: worth knowing."""


class Entry(NamedTuple):
    """A rule as it is written down. ``rule`` is ``None`` where it does not parse; ``counts``: it takes part in decisions."""

    text: str
    behavior: Behavior
    scope: str
    place: Place
    rule: Rule | None
    fault: str
    counts: bool


class Finding(NamedTuple):
    severity: Severity
    slug: str
    entry: Entry
    message: str

    def row(self) -> dict[str, Any]:
        entry = self.entry
        return {"severity": self.severity, "slug": self.slug, "rule": entry.text, "list": entry.behavior, "scope": entry.scope,
                "file": entry.place.file, "line": entry.place.line, "message": self.message}


def findings(cwd: Path, settings: str | None = None) -> list[Finding]:
    """Everything that is to be said about the rules of a folder, by file and line.

    :raises Unusable: the folder or the settings cannot be used.
    """
    desk = Desk(cwd, settings=settings, mode="default")
    entries = list(collect(desk))
    known = {name for plugin in desk.plugins if plugin.manifest for name in plugin.manifest.kernel.provides.get("tools", ())}
    found = list(inspect(entries, desk, known))
    return sorted(found, key=lambda f: (f.entry.place.file, f.entry.place.line or 0, f.severity, f.slug))


def collect(desk: Desk) -> Iterator[Entry]:
    """Every rule of every scope, whether or not it counts."""
    for behavior in BEHAVIORS:
        for layer, texts in desk.settings.by_layer(f"permissions.{behavior}"):
            key = f"{layer.path}, permissions.{behavior}"
            for text in texts if isinstance(texts, list) else ():
                if isinstance(text, str) and text.strip():
                    directory = "/" if layer.scope == "managed" else layer.directory
                    yield entry(text, behavior, layer.scope, find_rule(layer.path, behavior, text), directory, key)


def entry(text: str, behavior: Behavior, scope: Any, place: Place, directory: str = "/", origin: str = "") -> Entry:
    try:
        rule = Rule(text, behavior, scope, directory, origin)
    except RuleError as error:
        return Entry(text, behavior, scope, place, None, str(error), False)
    fault, counts = faults(rule, {rule.tool})  # unknown names have a check of their own
    return Entry(text, behavior, scope, place, rule, fault, counts)


def inspect(entries: list[Entry], desk: Desk, known: set[str]) -> Iterator[Finding]:
    """Run every check."""
    from . import checks
    from .cover import Cover

    cover = Cover([e for e in entries if e.rule is not None and e.counts], desk.facts)
    dead: set[int] = set()
    for item in entries:
        for severity, slug, message in checks.written(item, known):
            dead.add(id(item)) if severity == "error" else None
            yield Finding(severity, slug, item, message)
        if item.rule is None or not item.counts or id(item) in dead:
            continue
        for severity, slug, message in checks.meaning(item.rule, desk.facts):
            yield Finding(severity, slug, item, message)
        for severity, slug, message in cover.shadows(item):
            yield Finding(severity, slug, item, message)
    yield from _set_aside(entries, desk)


def _set_aside(entries: list[Entry], desk: Desk) -> Iterator[Finding]:
    """Rules that are in order and do not take part all the same."""
    managed_only = desk.settings.managed("allowManagedPermissionRulesOnly") is True
    layers = {layer.path: layer for layer in desk.settings.layers}
    untrusted: dict[str, list[Entry]] = {}
    for item in entries:
        if item.rule is None or not item.counts:
            continue
        file = item.rule.origin.rpartition(", permissions.")[0]
        if managed_only and item.scope != "managed":
            yield Finding("info", "managed-only", item, "only rules of managed settings count on this machine")
        elif item.behavior == "allow" and file in layers and not desk.sources.trusts(layers[file]):
            untrusted.setdefault(file, []).append(item)
    for items in untrusted.values():
        others = f" and {len(items) - 1} more allow rules of this file" if items[1:] else ""
        yield Finding("info", "not-trusted", items[0], f"it{others} do not count: this workspace has not been trusted")


def text(found: list[Finding]) -> str:
    """The findings for people."""
    lines: list[str] = []
    for finding in found:
        item = finding.entry
        lines.append(f"{shown(str(item.place), 300)}: {finding.severity} {finding.slug}: {item.behavior} {shown(item.text)}")
        lines.append(f"    {shown(finding.message, 400)}")
    counts = {s: sum(f.severity == s for f in found) for s in ("error", "warning", "info")}
    lines.append(f"{counts['error']} errors, {counts['warning']} warnings, {counts['info']} remarks")
    return "\n".join(lines)
