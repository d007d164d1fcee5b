"""One bad and one good example a rule, and the figures over all of them: recall and false alarms."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from kernel_linter.config import Config
from kernel_linter.rule import Finding
from kernel_linter.ruleset import everything
from kernel_linter.runner import lint

sys.path.insert(0, str(Path(__file__).parent))
from lint_cases import build, examples, load

CASES = load()
NEVER = {"KRN-INTERNAL"}


def check(root: Path, case: dict[str, Any], example: dict[str, Any]) -> list[Finding]:
    path = build(root, example, since=bool(case.get("since")))
    return lint(path, config=Config(since="HEAD" if case.get("since") else "", **case.get("config", {}))).findings


Results = dict[tuple[str, str, int], list[Finding]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Every example, checked once."""
    root = tmp_path_factory.mktemp("examples")
    return {(code, which, index): check(root / f"{which}-{code}-{index}", case, example) for code, case in CASES.items()
            for which in ("bad", "good") for index, example in enumerate(examples(case, which))}


def rows(which: str) -> list[Any]:
    return [pytest.param(code, index, id=f"{code}-{index}") for code, case in CASES.items()
            for index in range(len(examples(case, which)))]


def test_every_rule_has_examples() -> None:
    assert {rule.code for rule in everything()} == set(CASES)


@pytest.mark.parametrize(("code", "index"), rows("bad"))
def test_a_bad_example_is_found(code: str, index: int, results: Results) -> None:
    findings = results[code, "bad", index]
    assert code in {f.code for f in findings}, [f"{f.code} {f.message}" for f in findings]
    assert all(f.code not in NEVER and f.line >= 1 and f.column >= 1 and f.message for f in findings)


@pytest.mark.parametrize(("code", "index"), rows("good"))
def test_a_good_example_is_quiet(code: str, index: int, results: Results) -> None:
    findings = [f for f in results[code, "good", index] if f.code == code or f.severity == "error" or f.code in NEVER]
    assert not findings, [f"{f.code} {f.message}" for f in findings]


def test_recall_and_false_alarms(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    """At least 80 classes of defects: recall 95 % or better, alarms on at most 1 % of the good ones."""
    bad = [code in {f.code for f in found} for (code, which, _), found in results.items() if which == "bad"]
    good = [any(f.code == code or f.severity == "error" for f in found)
            for (code, which, _), found in results.items() if which == "good"]
    with capsys.disabled():
        print(f"\nlint: {len(CASES)} classes, recall {sum(bad)}/{len(bad)} = {sum(bad) / len(bad):.1%}, "
              f"false alarms {sum(good)}/{len(good)} = {sum(good) / len(good):.1%}")
    assert len(CASES) >= 80 and sum(bad) / len(bad) >= 0.95 and sum(good) / len(good) <= 0.01
