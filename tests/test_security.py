"""The security figures in small: hostile commands that bash judges, everyday commands, paths, a swapped link.

``python -m benchmarks.security`` measures the same at full size. ``SECURITY_SEED`` and ``SECURITY_COMMANDS`` choose another
part of the corpus.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
SEED = int(os.environ.get("SECURITY_SEED", "1"))
COMMANDS = int(os.environ.get("SECURITY_COMMANDS", "240"))

pytest.importorskip("kernel_permissions", reason="the plugin permissions is not installed")
pytest.importorskip("kernel_tools_files", reason="the plugin tools-files is not installed")
pytest.importorskip("kernel_tools_shell", reason="the plugin tools-shell is not installed")


def part(name: str) -> ModuleType:
    """A module of the benchmark; the folder is no distribution."""
    from importlib import import_module

    sys.path.insert(0, str(ROOT))
    try:
        return import_module(f"benchmarks.security.{name}")
    finally:
        sys.path.remove(str(ROOT))


@pytest.mark.skipif(not all(shutil.which(p) for p in ("bash", "dash", "git")), reason="bash, dash and git are needed")
def test_no_hostile_command_gets_by() -> None:
    """Where the decision is allow, bash runs, writes and tells nothing that the rules do not permit."""
    every = list(part("corpus").corpus(2500, SEED))
    sample = random.Random(SEED).sample(every, COMMANDS)
    found = part("commands").judge(sample)
    print(f"seed {SEED}: {found.harmful} of {found.commands} commands did harm; {found.allowed} of {found.decisions} allowed")
    assert found.bypasses == [], f"SECURITY_SEED={SEED} SECURITY_COMMANDS={COMMANDS}"
    assert found.harmful > found.commands * 0.8 and found.allowed > 0, "the corpus is hostile, and some of it is allowed"


def test_everyday_commands_rarely_ask() -> None:
    """At most 5 % of ordinary commands ask or are refused under sensible rules; the list is real enough to say so."""
    found = part("everyday").measure(rounds=1)
    assert found.commands >= 600
    assert found.share <= 0.05, [command for _, command, _, _ in found.asked]


def test_a_second_corpus_agrees() -> None:
    """Commands that nobody had in mind when the engine was written, and others that must not pass beside them."""
    found = part("everyday").second(later=True)
    assert found.free >= 600 and len(found.asked) / found.free <= 0.05, found.asked
    assert found.guarded >= 80 and not found.passed


@pytest.mark.anyio
async def test_no_spelling_of_a_path_gets_by(tmp_path: Path) -> None:
    """Every seventh spelling, through every kind of link, by every tool: no secret is told, no file is made, none is refused
    that is free."""
    places = part("places")
    found = await places.paths(tmp_path / "x", range(SEED % 7, len(places.SPELLINGS), 7))
    # CPython 3.11 may fail where two threads compile at once, as pytest does here; that says nothing about paths.
    wrong = [w for w in found.wrong if "AST constructor recursion depth mismatch" not in w.what]
    assert wrong == [] and found.calls > 600


@pytest.mark.anyio
async def test_a_link_that_is_swapped_does_not_win(tmp_path: Path) -> None:
    found = await part("places").race(tmp_path / "x", 30)
    assert found.wrong == [] and found.swaps > found.calls
