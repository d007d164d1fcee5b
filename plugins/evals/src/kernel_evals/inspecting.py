"""Suites as Inspect tasks: a case is a sample, the harness is the solver, the checks are the scorer.

``inspect eval kernel_evals/suite -T name=permission-regression --model none`` runs one; ``kernel evals run`` does it by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio.to_thread
import msgspec
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from kernel_evals import measures
from kernel_evals.calls import results
from kernel_evals.checks import why_not
from kernel_evals.play import Setup, play
from kernel_evals.suite import Case, Suite, find, load

listeners: list[Callable[[], None]] = []
"""Called behind each case that was played, in the loop of Inspect: progress."""


@solver
def harness(suite: str, setup: dict[str, Any] | None = None) -> Solver:
    """Runs the sample's case through ``kernel -p``.

    :param suite: the file of the suite. :param setup: the fields of ``Setup``.
    """
    loaded, chosen = load(find(suite)), msgspec.convert(setup or {}, Setup)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        case = _case(loaded, str(state.sample_id))
        played = await anyio.to_thread.run_sync(play, loaded, case, chosen)
        for heard in listeners:
            heard()
        state.store.set("played", msgspec.to_builtins(played))
        last = results(played)[-1:]
        state.output.completion = str(last[0].get("result", "")) if last else ""
        return state

    return solve


@scorer(metrics=[accuracy()])
def checks(suite: str) -> Scorer:
    """Right where every check of the case holds. The measures are in the metadata."""
    loaded = load(find(suite))

    async def score(state: TaskState, target: Target) -> Score:
        from kernel_evals.play import Played

        case = _case(loaded, str(state.sample_id))
        played = msgspec.convert(state.store.get("played"), Played)
        points = measures.points(played, [check.probe for check in case.checks if check.probe is not None])
        why = {check.name: why_not(check, played, points) for check in case.checks}
        red = {name: text for name, text in why.items() if text}
        return Score(value=INCORRECT if red else CORRECT, answer=state.output.completion,
                     explanation="\n".join(f"{name}: {text}" for name, text in red.items()) or "every check holds",
                     metadata={"checks": why, "points": msgspec.to_builtins(points)})

    return score


@task
def suite(name: str, setup: dict[str, Any] | None = None) -> Task:
    """A suite, by its file or the name of one that comes along."""
    loaded = load(find(name))
    return as_task(loaded, setup, loaded.name)


def as_task(loaded: Suite, setup: dict[str, Any] | None, name: str) -> Task:
    """:param name: of the task; a suite may run several times in one evaluation."""
    samples = [Sample(id=case.id, input="\n\n".join(case.prompts), target="every check holds",
                      metadata={"description": case.description}) for case in loaded.cases]
    return Task(dataset=MemoryDataset(samples, name=loaded.name), solver=harness(loaded.path, setup), scorer=checks(loaded.path),
                name=name, metadata={"description": loaded.description, "measures": loaded.measures})


def _case(suite: Suite, id: str) -> Case:
    return next(case for case in suite.cases if case.id == id)
