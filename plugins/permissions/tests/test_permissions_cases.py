"""The contract's decision cases, one test each (permissions contract, section 13). They are data beside the repository."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from kernel_permissions.paper import Paper, PaperView, paper_tool

SHARED = Path(os.environ.get("KERNEL_SHARED", Path(__file__).resolve().parents[4] / "shared"))
TABLE = SHARED / "contract" / "cases" / "permissions.yaml"
DATA: dict[str, Any] = yaml.safe_load(TABLE.read_text("utf-8")) if TABLE.is_file() else {"defaults": {}, "cases": []}

pytestmark = pytest.mark.skipif(not TABLE.is_file(), reason=f"the contract's cases are not at {TABLE}")


def command_of(given: dict[str, Any]) -> dict[str, Any]:
    given = dict(given)
    if "command_repeat" in given:
        part = given.pop("command_repeat")
        given["command"] = part["prefix"] + part["text"] * part["times"] + part["suffix"]
    return given


def paper_of(case: dict[str, Any]) -> tuple[Paper, int]:
    """The case's policy, and how many rules were set aside before they were read."""
    managed_only = case.get("settings", {}).get("allowManagedPermissionRulesOnly", False)
    dropped = 0
    lists: dict[str, list[Any]] = {}
    for behavior in ("allow", "ask", "deny"):
        lists[behavior] = []
        for item in case["rules"].get(behavior, []):
            text, source = (item, "project") if isinstance(item, str) else (item["rule"], item["from"])
            untrusted = not case["trusted"] and behavior == "allow" and source == "project"
            dropped += untrusted
            if not untrusted and not (managed_only and source != "managed"):
                lists[behavior].append((text, source))
    paper = Paper(
        **lists, cwd=case["cwd"], directories=tuple(case["add_dirs"]), anchors={"project": case["project_root"]},
        view=PaperView(home=case["home"], windows=case["platform"] == "windows", **case.get("fs", {})),
        classifier=(lambda call, why: case["classifier"]) if "classifier" in case else None,
        sandboxed=(lambda input: True) if case.get("sandboxed") else None)
    return paper, dropped


def merged(case: dict[str, Any]) -> dict[str, Any]:
    return {**DATA["defaults"], **case}


@pytest.mark.parametrize("case", [merged(c) for c in DATA["cases"]], ids=[c["id"] for c in DATA["cases"]])
def test_the_decision_is_the_contracts(case: dict[str, Any]) -> None:
    paper, dropped = paper_of(case)
    call = paper.call(case["call"]["tool"], command_of(case["call"]["input"]), mode=case["mode"],
                      hook=case.get("hook", {}).get("decision"))
    explained = [case["why"], *paper.policy.explain(call)]
    expected = case["expect"] if isinstance(case["expect"], list) else [case["expect"]]
    assert paper.policy.decide(call).behavior in expected, explained
    if "expect_visible" in case:
        assert paper.policy.is_visible(paper_tool(case["call"]["tool"])) is case["expect_visible"]
    if "expect_warning" in case:
        assert (bool(paper.warnings) or bool(dropped)) is case["expect_warning"]


def test_the_table_is_whole() -> None:
    assert len(DATA["cases"]) >= 90
