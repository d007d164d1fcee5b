"""The contract's cases for hooks, played in this process; those that cannot be played yet are listed with reasons.

``expected_failures.yaml`` may only shrink: a listed case that passes turns this test red.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from .case_driver import MissingPlugin, NotDriven, Play
from .case_frontmatter import FRONTMATTER
from .case_outcomes import OUTCOMES
from .case_peers import PEERS
from .case_played import PLAYED, PLAYED_OUTCOMES
from .case_words import DRIVERS
from .conftest import Server, World

SHARED = Path(os.environ.get("KERNEL_SHARED", Path(__file__).parents[4] / "shared"))
FILE = SHARED / "contract" / "cases" / "hooks.yaml"
CASES: list[dict[str, Any]] = yaml.safe_load(FILE.read_text())["cases"] if FILE.exists() else []
DRIVEN = DRIVERS | PLAYED | PEERS | FRONTMATTER
CHECKED = OUTCOMES | PLAYED_OUTCOMES
OPEN: dict[str, str] = yaml.safe_load((Path(__file__).parent / "expected_failures.yaml").read_text()) or {}

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not CASES, reason=f"the contract's cases are not at {FILE}")]


@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
async def test_case(world: World, server: Server, case: dict[str, Any]) -> None:
    play = Play(world, server, case)
    try:
        play.lay_out()
        await (DRIVEN[case["id"]](play) if case["id"] in DRIVEN else play.drive())
        play.check()
        outcome = CHECKED.get(case["id"])
        if outcome is not None:
            assert outcome(play), f"{case['id']}: {case['then']['outcome']}"
        elif "outcome" in case["then"] and case["id"] not in DRIVEN:
            raise NotDriven("its outcome is told in words that nothing checks")
    except MissingPlugin as error:
        pytest.skip(str(error))
    except (NotDriven, AssertionError) as error:
        if case["id"] in OPEN:
            pytest.xfail(OPEN[case["id"]])
        if isinstance(error, NotDriven):
            pytest.fail(f"{case['id']} is not driven and not listed in expected_failures.yaml: {error}")
        raise
    finally:
        if play.session is not None:
            play.session._started = True
            await play.session.close()
    assert case["id"] not in OPEN, "the case passes: take it out of expected_failures.yaml"


def test_every_listed_case_exists() -> None:
    assert OPEN.keys() <= {c["id"] for c in CASES}
    assert all(isinstance(reason, str) and reason for reason in OPEN.values()) and len(OPEN) <= 2
