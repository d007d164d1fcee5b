"""Decisions that remember which rule they came from, for a whole call and for each of its parts."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

from kernel import PermissionCall, Verdict

from ..decide import Decision
from ..facts import Facts
from ..forms import Sub
from ..judge import Judgement
from ..rules import Rule
from ..shell import Parser


class Weighing(Decision):
    """``rule``: the rule that decided, ``None`` where none did. The verdict alone does not name managed rules."""

    rule: Rule | None = None

    def allow(self, reason: str, message: str, rule: Rule | None = None) -> Verdict:
        self.rule = rule or self.rule
        return super().allow(reason, message, rule)

    def ask(self, reason: str, message: str, rule: Rule | None = None, *,
            suggestions: list[dict[str, Any]] | None = None) -> Verdict:
        self.rule = rule or self.rule
        return super().ask(reason, message, rule, suggestions=suggestions)

    def deny(self, reason: str, why: str, rule: Rule | None = None) -> Verdict:
        self.rule = rule or self.rule
        return super().deny(reason, why, rule)


class Part(NamedTuple):
    """One part of a command. ``loose`` are the texts that allow rules see, ``strict`` those of ask and deny rules."""

    text: str
    verdict: Verdict
    rule: Rule | None
    loose: list[str]
    strict: list[str]


def parts(call: PermissionCall, facts: Facts, parser: Parser) -> Iterator[Part]:
    """Each part of a command decided by itself, where it stands: directory changes of the others count."""
    whole = Weighing(call, facts, parser)
    if whole.judgement is not None and not whole.judgement.opaque:
        for sub in whole.judgement.subs:
            one = Weighing(call, facts, parser)
            assert one.judgement is not None
            one.judgement = _narrowed(one.judgement, sub)
            yield Part(_text(sub), one.run(), one.rule, sub.texts, list(sub.strict))
    elif whole.pipeline and not whole.opaque:
        for piece in whole.pipeline:
            one = Weighing(call, facts, parser)
            one.pipeline = [piece]
            yield Part(piece.text, one.run(), one.rule, [piece.text], [piece.text])


def _narrowed(judgement: Judgement, sub: Sub) -> Judgement:
    part = copy.copy(judgement)  # nothing in it has been worked out yet
    part.subs = [sub]
    return part


def _text(sub: Sub) -> str:
    simple = sub.simple
    redirects = [f"{r.op} {r.target.text if r.target else '...'}" for r in simple.redirects]
    return " ".join([t for t in (simple.text, *redirects) if t])
