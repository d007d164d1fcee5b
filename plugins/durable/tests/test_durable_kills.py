"""SIGKILL at random moments, through the command line: the sample of ``python -m benchmarks.durable``."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from benchmarks.durable import measure, no_postgres, no_temporal


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "temporal"])
def test_a_killed_run_is_taken_up_and_nothing_finished_is_repeated(kind: str, tmp_path: Path) -> None:
    if missing := {"sqlite": "", "postgres": no_postgres(), "temporal": no_temporal()}[kind]:
        pytest.skip(missing)
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    found = measure(6 if kind == "sqlite" else 3, kind, seed)
    assert found["failures"] == {}
    assert found["kills"] >= 2
