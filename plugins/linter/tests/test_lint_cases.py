"""One bad and one good example a rule, and the figures over all of them: recall and false alarms."""

from __future__ import annotations

import sys
from collections.abc import Iterator
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
EXPECTED_BESIDE: dict[str, set[str]] = {
    # what a good example of one rule says beside it, for a reason
    "PLG030": set(),
}


def check(root: Path, case: dict[str, Any], example: dict[str, Any]) -> list[Finding]:
    path = build(root, example, since=bool(case.get("since")))
    return lint(path, config=Config(since="HEAD" if case.get("since") else "", **case.get("config", {}))).findings


def rows(which: str) -> Iterator[Any]:
    for code, case in CASES.items():
        for index, example in enumerate(examples(case, which)):
            yield pytest.param(code, example, id=f"{code}-{index}")


def test_every_rule_has_examples() -> None:
    assert {rule.code for rule in everything()} == set(CASES)


@pytest.mark.parametrize(("code", "example"), rows("bad"))
def test_a_bad_example_is_found(code: str, example: dict[str, Any], tmp_path: Path) -> None:
    findings = check(tmp_path, CASES[code], example)
    assert code in {f.code for f in findings}, [f"{f.code} {f.message}" for f in findings]
    assert not NEVER & {f.code for f in findings}, [f.message for f in findings if f.code in NEVER]
    for finding in findings:
        assert (finding.line >= 1 and finding.column >= 1 and finding.message
                and not Path(finding.path).is_absolute()) or str(tmp_path) in finding.path


@pytest.mark.parametrize(("code", "example"), rows("good"))
def test_a_good_example_is_quiet(code: str, example: dict[str, Any], tmp_path: Path) -> None:
    findings = [f for f in check(tmp_path, CASES[code], example) if f.code == code or f.severity == "error" or f.code in NEVER]
    assert not findings, [f"{f.code} {f.message}" for f in findings]


def test_recall_and_false_alarms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At least 80 classes of defects: recall 95 % or better, alarms on at most 1 % of the good ones."""
    found = total = alarms = good = 0
    for code, case in CASES.items():
        for index, example in enumerate(examples(case, "bad")):
            total += 1
            found += code in {f.code for f in check(tmp_path / f"bad-{code}-{index}", case, example)}
        for index, example in enumerate(examples(case, "good")):
            good += 1
            alarms += any(f.code == code or f.severity == "error" for f in check(tmp_path / f"good-{code}-{index}", case,
                                                                                 example))
    with capsys.disabled():
        print(f"\nlint: {len(CASES)} classes, recall {found}/{total} = {found / total:.1%}, false alarms {alarms}/{good} = "
              f"{alarms / good:.1%}")
    assert len(CASES) >= 80 and found / total >= 0.95 and alarms / good <= 0.01
