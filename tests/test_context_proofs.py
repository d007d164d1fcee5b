"""The proofs of ``benchmarks/context.py`` in a small size: what compaction keeps, what the cache keeps, what long runs cost."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from kernel.testing import installed

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not all(map(installed, ("compactor", "sessions", "evidence", "guards", "tools-tasks"))),
                                reason="needs the plugins compactor, sessions, evidence, guards and tools-tasks")


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import context

    return context


def test_pins_facts_and_the_prefix_hold_in_long_runs(context: Any) -> None:
    seed = random.randrange(1 << 30)
    seen = context.long_runs(3, seed)
    assert not seen.broken and seen.least >= 2, f"seed {seed}: {seen}"
    assert seen.pins and not seen.pins_lost, f"seed {seed}: {seen}"
    assert seen.worst >= 0.95 and seen.in_request + seen.in_files >= 0.9 * seen.facts, f"seed {seed}: {seen}"
    assert seen.stable >= 0.99 * seen.plain, f"seed {seed}: {seen}"


def test_a_history_of_two_thousand_messages_is_compacted_and_cleared(context: Any) -> None:
    assert {"encode", "compact", "clear"} == set(context.own_work(2_000, 1))


def test_many_turns_keep_little(context: Any) -> None:
    """No measure of time: that is the benchmark's."""
    assert context.many_turns(600, memory=True)["growth_mb"] < 4
