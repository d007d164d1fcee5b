"""The corpus of hostile commands: decided by the policy, run by bash, compared."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.security.arena import Arena
from benchmarks.security.corpus import Hostile, corpus
from benchmarks.security.judge import RuleSet, mistakes, rule_sets


class Bypass(NamedTuple):
    rules: str
    family: str
    command: str
    what: list[str]


class Figures(NamedTuple):
    """``commands``: how many ran. ``harmful``: in how many bash did something that some rule set forbids. ``decisions``:
    rule sets times commands; ``allowed``: how many of them were allow."""

    commands: int
    harmful: int
    decisions: int
    allowed: int
    bypasses: list[Bypass]
    families: Counter[str]


def policies(home: str, work: str) -> list[tuple[RuleSet, Any]]:
    from kernel_permissions.paper import Paper
    from kernel_permissions.view import RealView

    return [(rules, Paper(allow=rules.allow, ask=rules.ask, deny=rules.deny, view=RealView(home), cwd=work))
            for rules in rule_sets()]


def judge(commands: Iterable[Hostile]) -> Figures:
    """Decide and run every command in one arena."""
    with tempfile.TemporaryDirectory() as folder:
        arena = Arena(Path(folder) / "arena")
        work = str(arena.work)
        sets = policies(str(arena.home), work)
        total = harmful = allowed = 0
        bypasses: list[Bypass] = []
        families: Counter[str] = Counter()
        for hostile in commands:
            decisions = [(rules, paper.bash(hostile.command, mode=rules.mode)) for rules, paper in sets]
            deed = arena.run(hostile.command)
            wrong = {rules.name: mistakes(deed, rules, work) for rules, _ in sets}
            total += 1
            if any(wrong.values()):
                harmful += 1
                families[hostile.family] += 1
            for rules, decision in decisions:
                allowed += decision == "allow"
                if decision == "allow" and wrong[rules.name] and not (hostile.inner and rules.reads_anywhere):
                    bypasses.append(Bypass(rules.name, hostile.family, hostile.command, wrong[rules.name]))
        return Figures(total, harmful, total * len(sets), allowed, bypasses, families)


def measure(count: int, seed: int, workers: int = 2) -> Figures:
    """The whole corpus, on several processes."""
    commands = list(corpus(count, seed))
    parts = [commands[n::workers] for n in range(workers)]
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(judge, parts))
    families = sum((f.families for f in found), Counter[str]())
    return Figures(sum(f.commands for f in found), sum(f.harmful for f in found), sum(f.decisions for f in found),
                   sum(f.allowed for f in found), [b for f in found for b in f.bypasses], families)
