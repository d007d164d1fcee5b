"""Find the rules: one module a rule in ``rules/<prefix>/``, imported when a target of its kind first appears."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from kernel_linter.rule import Rule

FOLDER = Path(__file__).parent / "rules"
KINDS: dict[str, tuple[str, ...]] = {
    "plugin": ("plg", "skl", "agt", "mcp", "lsp", "sec", "krn", "mkt", "lnt"), "manifest": ("plg",), "json": ("plg",),
    "marketplace": ("mkt",), "entry": ("mkt", "sec", "plg"), "text": ("skl", "sec", "plg"), "skill": ("skl", "sec"),
    "command": ("cmd", "skl", "sec"), "agent": ("agt", "skl"), "style": ("ost", "skl"), "theme": ("thm",), "workflow": ("wfl",),
    "hook-file": ("hok",), "hooks": ("hok",), "group": ("hok",), "handler": ("hok", "sec"), "mcp-file": ("mcp",),
    "server": ("mcp", "sec"),
    "lsp-file": ("lsp",), "lsp": ("lsp",), "monitor-file": ("mon",), "monitor": ("mon", "sec"), "settings": ("set",),
    "file": ("lnt", "sec"),
}
"""Kind of target -> prefixes whose rules may look at it."""


def build(module: ModuleType) -> Rule:
    """The rule of a module: its constants, its ``check`` and its docstring."""
    slug = module.__name__.rpartition(".")[2].replace("_", "-").removesuffix("-")
    return Rule(module.CODE, slug, module.SEVERITY, module.ON, module.check, inspect.cleandoc(module.__doc__ or ""), module.FIX,
                module.SINCE,
                getattr(module, "PROFILE", "default"))


@cache
def of_prefix(prefix: str) -> tuple[Rule, ...]:
    folder = FOLDER / prefix
    names = sorted(p.stem for p in folder.glob("*.py") if not p.stem.startswith("_"))
    rules = [build(import_module(f"kernel_linter.rules.{prefix}.{name}")) for name in names]
    return tuple(sorted(rules, key=lambda r: r.code))


def prefixes() -> list[str]:
    return sorted(p.name for p in FOLDER.iterdir() if p.is_dir() and not p.name.startswith("_"))


def everything() -> list[Rule]:
    """All rules of this plugin, by code."""
    return sorted((r for p in prefixes() for r in of_prefix(p)), key=lambda r: r.code)


class RuleSet:
    """The rules of a run by kind of target; ``more`` are those that other plugins registered."""

    def __init__(self, more: Iterable[Rule] = ()) -> None:
        self.more = list(more)
        self.used: dict[str, Rule] = {}
        self._by_kind: dict[str, list[Rule]] = {}

    def on(self, kind: str) -> list[Rule]:
        if kind not in self._by_kind:
            found = [r for p in KINDS.get(kind, ()) for r in of_prefix(p) if kind in r.on.split()]
            found += [r for r in self.more if kind in r.on.split()]
            self._by_kind[kind] = found
            self.used.update({r.code: r for r in found})
        return self._by_kind[kind]

    def all(self) -> list[Rule]:
        return [*everything(), *self.more]

    def find(self, word: str) -> Rule | None:
        """A rule by code or by ``PREFIX/slug``."""
        for prefix in [word[:3].lower()] if (FOLDER / word[:3].lower()).is_dir() else prefixes():
            for rule in of_prefix(prefix):
                if word in (rule.code, rule.id):
                    return rule
        return next((r for r in self.more if word in (r.code, r.id)), None)


def foreign(things: Iterable[tuple[Any, str]]) -> Iterator[Rule]:
    """Rules that other plugins registered: objects with ``name`` (the code), ``on`` and ``check``; the rest is optional."""
    for thing, plugin in things:
        doc = getattr(thing, "doc", None) or thing.__doc__ or ""
        yield Rule(thing.name, getattr(thing, "slug", thing.name.lower()), getattr(thing, "severity", "warning"), thing.on,
                   thing.check,
                   inspect.cleandoc(doc), "none", getattr(thing, "since", ""), plugin=plugin)
