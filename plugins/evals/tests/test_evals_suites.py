"""Each suite that comes along is green, and finds the faults that it names; suites are read strictly."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_evals import report
from kernel_evals.running import CaseReport, SuiteReport
from kernel_evals.suite import BUILT_IN, load

from kernel import UsageError
from kernel.testing import installed

NEEDS = ("headless", "model-script", "tools-shell", "tools-files", "sessions", "permissions", "command-hooks", "compactor",
         "memory", "structured-output", "evidence")
whole = pytest.mark.skipif(not all(map(installed, NEEDS)), reason=f"needs {', '.join(NEEDS)}")
NAMES = ["broken-schemas", "citation-hallucination", "context-overflow", "memory-pollution", "permission-regression",
         "prompt-injection", "tool-errors"]


def environment(folder: Path) -> dict[str, str]:
    return {"HOME": str(folder / ".home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8",
            "PYTHONPATH": os.environ.get("PYTHONPATH", "")}


def evals(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "kernel", "evals", *args], cwd=folder, env=environment(folder),
                          capture_output=True, text=True, timeout=300, check=False)


@whole
def test_each_suite_finds_its_planted_faults_and_is_green_without(tmp_path: Path) -> None:
    """``prove`` runs each suite as it is and once for each fault; the red checks must hold all those that the fault names."""
    done = evals(tmp_path, "prove", "--json")
    assert done.stdout.startswith("["), done.stderr
    rows = {(row["suite"], row["fault"]): row for row in json.loads(done.stdout)}
    suites = [load(BUILT_IN / f"{name}.yaml") for name in NAMES]
    assert len(rows) == len(suites) + sum(len(suite.faults) for suite in suites) and all(suite.faults for suite in suites)
    for suite in suites:
        assert rows[suite.name, "no fault"]["red"] == {}
        for fault in suite.faults:
            red = rows[suite.name, fault.name]["red"]
            assert set(fault.breaks) <= set(red) and all(red.values()), f"{suite.name}, {fault.name}: {red}"
    assert done.returncode == 0


def test_all_suites_are_there_and_listed(tmp_path: Path) -> None:
    assert [path.stem for path in sorted(BUILT_IN.glob("*.yaml"))] == NAMES
    listed = json.loads(evals(tmp_path, "list", "--json").stdout)
    assert [row["name"] for row in listed] == NAMES and all(row["cases"] and row["faults"] and row["measures"] for row in listed)


GOOD = """\
name: mine
description: d
cases:
  - id: one
    description: d
    prompts: [hello]
    script: {turns: [{text: hi there}]}
    checks:
      - {name: says hi, result: {contains: hi}}
"""


@pytest.mark.parametrize(("old", "new", "line", "told"), [
    ("name: mine", "name: Mine!", 1, "$.name"), ("contains: hi", "contians: hi", 9, "contians"),
    ("prompts: [hello]", "prompts: []", 6, "$.cases[0].prompts"), ("result: {contains: hi}", "", 9, "expected one of"),
    ("    script: {turns: [{text: hi there}]}\n", "", 4, "either script or recording"),
    ("id: one", "id: ../one", 4, "$.cases[0].id"),
    ("    prompts: [hello]", "    prompts: [hello]\n    files: {../x: y}", 7, "stay inside"),
    ("cases:", "faults: [{name: f, description: d, breaks: ['one: no'], block: [x]}]\ncases:", 3, "is no check of a case"),
    ("cases:", "faults: [{name: f, description: d, breaks: ['one: says hi']}]\ncases:", 3, "plants nothing"),
    ("description: d\ncases", "description: &a d\ncases", 0, ""),
    ("description: d\ncases", "description: *a\ncases", 2, "aliases"),
    ("cases:", "cases: [", 4, ""), ("name: mine", "? [a]: b\nname: mine", 1, "")])
def test_what_does_not_fit_is_named_by_line_and_field(tmp_path: Path, old: str, new: str, line: int, told: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD)
    assert load(path).name == "mine"
    path.write_text(GOOD.replace(old, new, 1))
    if not line:
        load(path)
        return
    with pytest.raises(UsageError) as raised:
        load(path)
    assert told in str(raised.value) and re.search(rf"mine\.yaml:{line}\b", str(raised.value)), raised.value


@whole
def test_two_sets_are_compared_and_logs_are_inspects_own(tmp_path: Path) -> None:
    from inspect_ai.log import read_eval_log

    (tmp_path / "mine.yaml").write_text(GOOD)
    done = evals(tmp_path, "run", "mine.yaml", "memory-pollution", "--compare-block", "memory", "--report", "page.html",
                 "--logs", "logs", "--json")
    assert done.returncode == 1, done.stderr
    first, second = json.loads(done.stdout)["sides"]
    assert first["ok"] and not second["ok"] and second["setup"] == "as installed without memory"
    assert first["rates"]["task completion rate"] == 1.0
    names = {row["metric"] for row in first["measures"]}
    assert {"kernel.run.count", "kernel.run.turns", "kernel.tool.decision", "kernel.request.ttft",
            "claude_code.token.usage"} <= names
    log = read_eval_log(first["suites"][0]["log"])
    assert log.status == "success" and log.samples and log.samples[0].scores["checks"].value == "C"
    page = (tmp_path / "page.html").read_text()
    assert page.count("✗") >= 2 and "as installed without memory" in page and "http" not in page.replace("http-equiv", "")


def test_differences_are_told_and_nothing_of_a_run_moves_the_cursor() -> None:
    sides = [[SuiteReport(suite="s", setup=setup, cases=[CaseReport(id="one", checks={"c": why, "d": ""})])]
             for setup, why in (("a", ""), ("b", "it says \x1b[31mred"))]
    told = report.told(sides)
    assert "== different\n     s, one: c: holds -> red (it says  [31mred)" in told and "RED  s" in told and "\x1b" not in told
    assert report.told([sides[0], sides[0]]).endswith("== no difference")


@whole
def test_a_red_case_says_why_and_a_hanging_one_is_ended(tmp_path: Path) -> None:
    text = GOOD.replace("contains: hi}", "contains: farewell}").replace("id: one\n", "id: one\n    timeout_s: 60\n")
    hanging = text[text.index("  - id"):].replace("id: one", "id: two").replace("timeout_s: 60", "timeout_s: 3").replace(
        "{text: hi there}", "{text: hi there, delay: 600}")
    (tmp_path / "mine.yaml").write_text(text + hanging)
    done = evals(tmp_path, "run", "mine.yaml")
    assert done.returncode == 1 and "one: says hi: the result does not hold 'farewell'" in done.stdout, done.stderr
    assert "two: says hi: there is no result" in done.stdout and "ended after 3 s" in done.stdout


@whole
def test_inspect_itself_runs_a_suite_and_a_recording_is_played(tmp_path: Path) -> None:
    (tmp_path / "talk.yaml").write_text("name: talk\nturns: [{text: hi from the record}]\n")
    (tmp_path / "mine.yaml").write_text(GOOD.replace("script: {turns: [{text: hi there}]}", "recording: talk.yaml"))
    command = [sys.executable, "-m", "inspect_ai", "eval", "kernel_evals/suite", "-T", f"name={tmp_path}/mine.yaml",
               "--model", "none", "--display", "none", "--log-format", "json", "--log-dir", "logs"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False,
                          timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    (log,) = (tmp_path / "logs").glob("*.json")
    found = json.loads(log.read_text())
    assert found["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 1.0
    assert "hi from the record" in log.read_text()


def test_nothing_heavy_is_imported_before_a_run(tmp_path: Path) -> None:
    code = ("import sys, runpy; sys.argv = ['kernel', 'evals', 'list']\n"
            "try: runpy.run_module('kernel', run_name='__main__')\nexcept SystemExit: pass\nprint('inspect_ai' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "False", done.stderr
