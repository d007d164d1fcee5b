"""Runs suites by Inspect and reads its logs: which checks hold, and the measures. Inspect is imported nowhere earlier."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from kernel import KernelError
from kernel_evals.measures import Point
from kernel_evals.play import Setup
from kernel_evals.suite import Suite


class CaseReport(Struct, kw_only=True):
    """``checks``: name -> nothing where it holds, else why not."""

    id: str
    checks: dict[str, str]
    answer: str = ""
    points: list[Point] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not any(self.checks.values())


class SuiteReport(Struct, kw_only=True):
    suite: str
    setup: str
    cases: list[CaseReport]
    log: str = ""

    @property
    def ok(self) -> bool:
        return all(case.ok for case in self.cases)

    @property
    def red(self) -> dict[str, str]:
        """``case: check`` -> why it does not hold."""
        return {f"{case.id}: {name}": why for case in self.cases for name, why in case.checks.items() if why}

    @property
    def points(self) -> list[Point]:
        return [point for case in self.cases for point in case.points]


def run(pairs: list[tuple[Suite, Setup]], *, logs: Path | None = None, at_a_time: int = 2) -> list[SuiteReport]:
    """Run each suite as it is set up; reports in their order.

    :param logs: the folder of Inspect's logs; without one they are not kept.
    :param at_a_time: cases that run side by side.
    :raises KernelError: Inspect could not run a suite to its end.
    """
    os.environ.setdefault("INSPECT_LOG_LEVEL", "warning")
    from inspect_ai import eval

    from kernel_evals.inspecting import as_task

    with tempfile.TemporaryDirectory(prefix="kernel-evals-logs-") as kept_nowhere:
        tasks = [as_task(suite, msgspec.to_builtins(setup), f"{suite.name} {n}") for n, (suite, setup) in enumerate(pairs)]
        done = eval(tasks, model=None, display="none", log_dir=str(logs or kept_nowhere), log_format="json",
                    max_samples=at_a_time, max_tasks=1, ctl_server=False, score_display=False, fail_on_error=False)
        by_name = {log.eval.task: log for log in done}
        return [_report(suite, setup, by_name.get(f"{suite.name} {n}"), kept=logs is not None)
                for n, (suite, setup) in enumerate(pairs)]


def _report(suite: Suite, setup: Setup, log: Any, *, kept: bool) -> SuiteReport:
    if log is None or log.status != "success":
        error = getattr(getattr(log, "error", None), "message", "there is no log")
        raise KernelError(f"the suite did not come to its end: {error}", context=f"kernel evals, {suite.name}")
    scored = {}
    for sample in log.samples or ():
        if sample.error is not None:
            raise KernelError(f"the case could not be run: {sample.error.message}",
                              context=f"kernel evals, {suite.name}, {sample.id}")
        found = next(iter((sample.scores or {}).values()), None)
        facts = (found.metadata or {}) if found else {}
        scored[str(sample.id)] = CaseReport(id=str(sample.id), answer=(found.answer or "") if found else "",
                                            checks=facts.get("checks", {}),
                                            points=msgspec.convert(facts.get("points", []), list[Point]))
    missing = [case.id for case in suite.cases if case.id not in scored or not scored[case.id].checks]
    if missing:
        raise KernelError(f"no score for {', '.join(missing)}", context=f"kernel evals, {suite.name}")
    return SuiteReport(suite=suite.name, setup=setup.name, cases=[scored[case.id] for case in suite.cases],
                       log=str(log.location) if kept else "")
