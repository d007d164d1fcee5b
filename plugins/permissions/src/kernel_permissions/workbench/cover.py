"""Which rules stand in the shade of others: everything they match, another rule decides first.

Patterns are tried out with samples: texts in which ``*`` became a word that no other rule names. A rule is covered where
another one covers all of its samples; it cannot be covered by accident, since nobody writes that word.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import Facts
from ..paths import PathPattern
from ..rules import PATH_RULES, Rule
from ..shell import Parser
from .checks import FILLER, Remark, samples, subs_of
from .lint import Entry

_ORDER = {"deny": 0, "ask": 1, "allow": 2}
_PATH_TOOLS = frozenset(("Edit", "Write", "MultiEdit", "NotebookEdit"))


class Cover:
    """:param entries: all rules that take part."""

    def __init__(self, entries: list[Entry], facts: Facts) -> None:
        self.entries = entries
        self.facts = facts
        self.parser = Parser()

    def shadows(self, item: Entry) -> Iterator[Remark]:
        """The first rule that decides everything which this one is about."""
        assert item.rule is not None
        same: Entry | None = None
        for other in sorted(self.entries, key=lambda e: _ORDER[e.behavior]):
            if other is item or other.rule is None or _ORDER[other.behavior] > _ORDER[item.behavior]:
                continue
            if not self.covers(other.rule, item.rule):
                continue
            if other.behavior != item.behavior:
                by = "denied" if other.behavior == "deny" else "asked for"
                yield "warning", "shadowed", f"all it covers is {by} by {other.text} ({other.scope}, {other.place})"
                return
            earlier = self.entries.index(other) < self.entries.index(item)
            if same is None and (earlier or not self.covers(item.rule, other.rule)):
                same = other
        if same is not None:
            twin = same.rule is not None and same.rule.text == item.rule.text
            what = "the same rule" if twin else f"the wider rule {same.text}"
            yield "info", "redundant", f"{what} stands in {same.place} ({same.scope})"

    def covers(self, wide: Rule, narrow: Rule) -> bool:
        """Whether every call that ``narrow`` is about is one that ``wide`` is about."""
        if wide.bare:
            return self._same_tool(wide, narrow)
        if narrow.bare:
            return False
        if wide.tool in PATH_RULES and narrow.tool in PATH_RULES:
            # a Read deny keeps from changing too; an Edit allow lets read too
            across = (wide.tool, narrow.tool, wide.behavior) == ("Read", "Edit", "deny") or \
                (wide.tool, narrow.tool, narrow.behavior, wide.behavior) == ("Edit", "Read", "allow", "allow")
            return (wide.tool == narrow.tool or across) and self._path(wide, narrow)
        if wide.tool != narrow.tool:
            return False
        if wide.tool == "Bash":
            return self._command(wide, narrow)
        return wide.specifier == narrow.specifier

    def _same_tool(self, wide: Rule, narrow: Rule) -> bool:
        if wide.tool == narrow.tool or ("*" in wide.tool and "*" not in narrow.tool and wide.names((narrow.tool,))):
            return True
        if wide.tool.startswith("mcp__") and narrow.tool.startswith("mcp__") and "*" not in narrow.tool:
            return wide.names((narrow.tool,))
        return wide.tool == "Edit" and narrow.tool in _PATH_TOOLS

    def _command(self, wide: Rule, narrow: Rule) -> bool:
        for sample in samples(narrow):
            found = subs_of(sample, self.parser)
            if isinstance(found, str) or not found:
                return False
            forms = [f for sub in found for f in (sub.texts if wide.behavior == "allow" else sub.strict)]
            if not any(wide.command.matches(form) for form in forms):
                return False
        return True

    def _path(self, wide: Rule, narrow: Rule) -> bool:
        facts = self.facts
        pattern = PathPattern(wide.specifier or "**", loose=wide.behavior != "allow", cwd=facts.cwd, home=facts.view.home,
                              directory=wide.directory)
        mine = PathPattern(narrow.specifier or "**", loose=narrow.behavior != "allow", cwd=facts.cwd, home=facts.view.home,
                           directory=narrow.directory)
        text = (narrow.specifier or "").lstrip("/")
        text = text[2:] if text.startswith(("~/", "./")) else text
        tries = [f"{mine.anchor.rstrip('/')}/{text.replace('**', deep).replace('*', FILLER).replace('?', 'z').rstrip('/')}{below}"
                 for deep in (FILLER, f"{FILLER}/{FILLER}") for below in ("", f"/{FILLER}")]
        tries = [t for t in tries if mine.covers(t)]
        return bool(tries) and all(pattern.covers(t) for t in tries)
