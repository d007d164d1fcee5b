"""A run that is killed at a write of its transcript loses nothing that was told and repeats nothing that was done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernel.testing import installed

ROOT = Path(__file__).parent.parent
needs = pytest.mark.skipif(not (installed("sessions") and installed("compactor")),
                           reason="needs the plugins sessions and compactor")


def benchmark(name: str, *args: str) -> dict[str, object]:
    done = subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *args, "--json"], cwd=ROOT, capture_output=True, text=True,
                          check=False, timeout=300)
    assert done.stdout.startswith("{"), done.stderr[-3000:]
    found: dict[str, object] = json.loads(done.stdout)
    return found


@needs
def test_nothing_that_was_told_is_lost_and_nothing_done_is_done_again() -> None:
    """A sample of the boundaries; ``KERNEL_KILLS=all``, or ``python -m benchmarks.killer``, takes all of them."""
    wanted = os.environ.get("KERNEL_KILLS", "15")
    found = benchmark("killer", *(() if wanted == "all" else ("--kills", wanted)))
    assert found["failures"] == {} and found["compactions"] == 2
    assert found["boundaries"] >= 120  # type: ignore[operator]


@needs
def test_generated_conversations_keep_calls_and_results_in_pairs() -> None:
    """A few hundred; ``python -m benchmarks.conversations`` plays 20,000."""
    found = benchmark("conversations", "--count", os.environ.get("KERNEL_CONVERSATIONS", "300"))
    assert found["failures"] == {}, f"seed {found['seed']}"
    for what in ("parallel", "denied", "interrupted", "compacted", "cut", "resumed"):
        assert found["kinds"][what] > 10, found["kinds"]  # type: ignore[index]


CALL = {"type": "tool_use", "id": "a", "name": "x", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "y"}
TEXT = {"type": "text", "text": "t"}
BROKEN = {
    "open at the end": [("user", [TEXT]), ("assistant", [CALL])],
    "no result": [("user", [TEXT]), ("assistant", [CALL]), ("user", [TEXT])],
    "stray result": [("user", [RESULT])],
    "text before the result": [("user", [TEXT]), ("assistant", [CALL]), ("user", [TEXT, RESULT])],
    "two results": [("user", [TEXT]), ("assistant", [CALL]), ("user", [RESULT, RESULT])],
    "an id twice": [("user", [TEXT]), ("assistant", [CALL]), ("user", [RESULT]), ("assistant", [CALL]), ("user", [RESULT])],
    "begins with the assistant": [("assistant", [TEXT]), ("user", [TEXT])],
    "blank": [("user", [{"type": "text", "text": " "}])],
    "empty": [("user", [])],
}


@pytest.mark.parametrize("what", BROKEN)
def test_the_checker_of_pairs_sees_what_is_broken(what: str) -> None:
    from benchmarks.pairing import faults

    assert faults([{"role": role, "content": blocks} for role, blocks in BROKEN[what]])
    whole = [("user", [TEXT]), ("assistant", [CALL]), ("user", [RESULT, TEXT])]
    assert faults([{"role": role, "content": blocks} for role, blocks in whole]) == []
