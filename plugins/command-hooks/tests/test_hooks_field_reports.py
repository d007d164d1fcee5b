"""Failing inputs of public fault reports about hooks, played with the real Bash tool and real handlers."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernel.testing import Run, alive, call, text

SHARED = Path(os.environ.get("KERNEL_SHARED", Path(__file__).parents[4] / "shared"))
FILE = SHARED / "cases" / "field-reports.yaml"
REPORTS = {c["id"]: c for c in yaml.safe_load(FILE.read_text())["cases"]} if FILE.exists() else {}

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not REPORTS, reason=f"the field reports are not at {FILE}")]

REWRITE = """#!/usr/bin/env python3
import json, sys
print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {sys.argv[1]: sys.argv[2]}}}))
"""


def marks(world: Any) -> list[str]:
    path = world.cwd / "marker.log"
    return path.read_text().splitlines() if path.exists() else []


async def play(world: Any, report: dict[str, Any]) -> Run:
    """Lay out what the report says and run its prompt."""
    world.program("mark", f'#!/bin/sh\necho "$*" >> {world.cwd}/marker.log\n')
    world.program("rewrite", REWRITE)
    setup = report["setup"]
    world.settings(**setup.get("settings", {}))
    for name, files in setup.get("plugins", {}).items():
        world.root = world.root / setup.get("install_root", "")
        root = world.plugin(name, {k: v for k, v in files.items() if not k.startswith(".claude-plugin")})
        (root / "h.py").write_text("import subprocess\nsubprocess.run(['mark', 'h'])\n")
    for path, content in setup.get("files", {}).items():
        (world.cwd / path).write_text(content)
    turns = [[call(t["name"], t["id"], **t["input"]) for t in turn["tools"]] if "tools" in turn else text(turn["text"])
             for turn in setup["model"]]
    world.start(turns, installed=["tools-shell", "tools-files"])
    run = await world.prompt(report["input"]["prompt"])
    await run.session.close()
    return run


def pairs(run: Run) -> bool:
    """Every call has exactly one result in the next message."""
    last = run.requests[-1]["messages"]
    for place, message in enumerate(last):
        calls = [b["id"] for b in message["content"] if isinstance(b, dict) and b.get("type") == "tool_use"]
        if calls:
            results = [b["tool_use_id"] for b in last[place + 1]["content"] if b.get("type") == "tool_result"]
            assert results == calls
    return True


async def test_a_matcher_keeps_other_tools_out(world: Any) -> None:
    run = await play(world, REPORTS["FR-001"])
    assert marks(world) == ["pre", "tool"] and not any("Read" in n for n in world.notices()) and pairs(run)


async def test_a_list_with_comma_and_space_is_names(world: Any) -> None:
    await play(world, REPORTS["FR-003"])
    assert marks(world) == ["m"]


async def test_exit_2_blocks_whatever_the_json_says(world: Any) -> None:
    run = await play(world, REPORTS["FR-004"])
    result = run.result_of("t1")
    assert marks(world) == [] and result["is_error"] and "no" in str(result["content"])


async def test_a_decision_outside_its_object_is_not_dropped_silently(world: Any) -> None:
    await play(world, REPORTS["FR-005"])
    (notice,) = world.notices()
    assert "PreToolUse:Bash" in notice and "permissionDecision outside hookSpecificOutput" in notice


async def test_continue_false_after_a_failure_ends_the_run_with_its_reason(world: Any) -> None:
    run = await play(world, REPORTS["FR-006"])
    assert len(run.requests) == 1 and "halt" in str(run.result.result)


@pytest.mark.parametrize("swapped", [False, True])
async def test_of_two_rewrites_one_counts_and_both_are_named(world: Any, swapped: bool) -> None:
    """Which one is the contract's rule: the one that ended last (12.2), not the place in the file."""
    report = json.loads(json.dumps(REPORTS["FR-007"]))
    handlers = report["setup"]["settings"]["hooks"]["PreToolUse"][0]["hooks"]
    if swapped:
        handlers[0]["command"], handlers[1]["command"] = (h["command"].replace("sleep 0.3; ", "") if "sleep" in h["command"]
                                                          else f"sleep 0.3; {h['command']}" for h in handlers)
    await play(world, report)
    assert marks(world) == (["B"] if swapped else ["A"])
    assert any("mark A" in n and "mark B" in n for n in world.notices())


@pytest.mark.parametrize("swapped", [False, True])
async def test_a_silent_hook_keeps_the_rewrite_of_another(world: Any, swapped: bool) -> None:
    report = json.loads(json.dumps(REPORTS["FR-008"]))
    if swapped:
        report["setup"]["settings"]["hooks"]["PreToolUse"][0]["hooks"].reverse()
    await play(world, report)
    assert marks(world) == ["NEW"]


async def test_a_hook_that_times_out_leaves_no_process(world: Any) -> None:
    began = time.monotonic()
    run = await play(world, REPORTS["FR-009"])
    assert time.monotonic() - began < 5 and marks(world) == ["tool"] and pairs(run)
    pid = (world.cwd / "child.pid").read_text().split()[1]
    assert not alive(int(pid))
    assert any("timed out" in n for n in world.notices())


async def test_stdin_ends_behind_the_input(world: Any) -> None:
    await play(world, REPORTS["FR-010"])
    seen = json.loads((world.cwd / "seen.json").read_text())
    assert marks(world) == ["eof"] and (seen["hook_event_name"], seen["prompt"]) == ("UserPromptSubmit", "go")


async def test_a_plugin_in_a_folder_with_spaces(world: Any) -> None:
    await play(world, REPORTS["FR-011"])
    assert marks(world) == ["h"]
