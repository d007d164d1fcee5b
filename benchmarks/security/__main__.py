"""``python -m benchmarks.security``: what the permission rules let through, with n beside every figure.

bash itself says what a hostile command runs; the real loop, policy and tools say what becomes of a path. Nothing here is
a test: ``tests/test_security.py`` holds the same in small.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio

from benchmarks.security import commands, everyday, places
from benchmarks.security.judge import rule_sets


def rows(count: int, seed: int, rounds: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def row(what: str, value: float, n: int, of: str, bound: str, within: bool, details: list[Any]) -> None:
        found.append({"what": what, "value": value, "n": n, "of": of, "bound": bound, "within": within, "details": details})
        print(".", end="", file=sys.stderr, flush=True)

    hostile = commands.measure(count, seed)
    row("hostile commands: bypasses", len(hostile.bypasses), hostile.decisions,
        f"decisions: {hostile.commands} commands x {len(rule_sets())} rule sets, {hostile.allowed} of them allow", "0",
        not hostile.bypasses, [b._asdict() for b in hostile.bypasses])
    row("  of which bash did harm", hostile.harmful, hostile.commands, "commands", "at least 2000", hostile.harmful >= 2000,
        [dict(hostile.families)])
    usual = everyday.measure()
    row("everyday commands: needless prompts", round(100 * usual.share, 1), usual.commands,
        f"commands, {len(usual.asked)} of them asked or denied; in %", "at most 5", usual.share <= 0.05,
        [f"{command!r}: {why}" for _, command, _, why in usual.asked])
    for later, rules, bound in ((False, "the rules it was written with", 1.0), (True, "the rules after a first day", 0.05)):
        other = everyday.second(later=later)
        row("second corpus: needless prompts", round(100 * len(other.asked) / other.free, 1), other.free,
            f"commands, {len(other.asked)} of them asked or denied, under {rules}; in %", "at most 5" if later else "",
            len(other.asked) / other.free <= bound, [f"{command!r}: {why}" for command, why in other.asked])
        row("second corpus: guarded ones allowed", len(other.passed), other.guarded, f"commands, under {rules}", "0",
            not other.passed, other.passed)
    row("one decision, p50", round(usual.p50_ms, 3), usual.commands, "commands, medians of 5; ms", "", True, [])
    row("one decision, p99", round(usual.p99_ms, 3), usual.commands, "commands, medians of 5; ms", "at most 1",
        usual.p99_ms <= 1, [])
    speed, lines = everyday.batch_per_second(), 20_000
    row("check --batch, answers a second", round(speed), lines, "lines, each a command of its own", "at least 1000",
        speed >= 1000, [])
    with tempfile.TemporaryDirectory() as folder:
        given = anyio.run(places.paths, Path(folder) / "paths")
        links = len(next(iter(places.TARGETS.values())))
        row("paths: wrong", len(given.wrong), given.calls,
            f"calls: {given.spellings} spellings x {links} ways through links x {given.tools} tools x {len(places.TARGETS)} "
            f"places; {given.free} free ones did their work", "0", not given.wrong, [f"{w.what}: {w.case}" for w in given.wrong])
        raced = anyio.run(places.race, Path(folder) / "race", rounds)
        row("a link swapped meanwhile: wrong", len(raced.wrong), raced.calls,
            f"calls beside {raced.swaps} swaps; {raced.inside} met the free side, {raced.refused} were refused", "0",
            not raced.wrong, raced.wrong)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.security", description=__doc__)
    parser.add_argument("--commands", type=int, default=4000, help="hostile commands, at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=400, help="rounds of five calls while a link is swapped")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = rows(options.commands, options.seed, options.rounds)
    print(file=sys.stderr)
    if options.json:
        print(json.dumps({"seed": options.seed, "rows": found}, indent=1))
    else:
        print(f"seed {options.seed}")
        for r in found:
            print(f"{r['what']:<38} {r['value']:>8}   n = {r['n']} {r['of']}" + (f"   ({r['bound']}: " + (
                "ok)" if r["within"] else "OVER)") if r["bound"] else ""))
            if not r["within"] or "everyday commands: needless" in r["what"]:
                for detail in r["details"][:30]:
                    print(f"    {str(detail)[:300]}")
    return 0 if all(r["within"] for r in found) else 1


if __name__ == "__main__":
    sys.exit(main())
