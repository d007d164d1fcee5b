"""SIGKILL at random moments, through the command line: the sample of ``python -m benchmarks.durable``."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.durable import ANSWER, World, measure, no_postgres, no_temporal, temporal


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_killed_run_is_taken_up_and_nothing_finished_is_repeated(kind: str, tmp_path: Path) -> None:
    if kind == "postgres" and no_postgres():
        pytest.skip(no_postgres())
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    found = measure(6 if kind == "sqlite" else 3, kind, seed)
    assert found["failures"] == {}
    assert found["kills"] >= 2


@pytest.mark.skipif(bool(no_temporal()), reason=no_temporal() or "there")
def test_the_same_on_temporal_which_finds_out_by_itself_that_a_process_is_gone(world: Callable[..., World]) -> None:
    """The seam is not shaped for one engine. ``python -m benchmarks.durable --database temporal`` kills at random there, too."""
    with temporal() as address:
        here = world((("Effect", "a"),), (("Deadly", "b"), ("Guarded", "c")), kill={"b": 1}, database=address)
        assert here.prompt().wait()[0] == -signal.SIGKILL
        (info,) = here.runs()
        here.free()
        assert here.run("durable", "resume", info.id)[0] == 75
        (question,) = json.loads(here.run("durable", "approvals", "list", "--json")[1])
        assert here.run("durable", "approvals", "answer", question["id"], "allow")[0] == 0
        code, out, err = here.run("durable", "resume", info.id)
        assert (code, out) == (0, f"{ANSWER}\n"), err
        assert [n[1] for n in here.notes() if n[0] == "effect"] == ["a", "b", "c"] and here.model.asked == [0, 1, 3]
        assert here.runs()[0].state == "done" and here.run("durable", "prune", "--days", "0")[1] == "1 runs forgotten.\n"
