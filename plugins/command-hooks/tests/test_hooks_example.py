"""The example ``examples/time-budget`` through the real command line: a folder, a script for the model, nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import World

EXAMPLE = Path(__file__).parents[3] / "examples" / "time-budget"

pytestmark = pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not beside the plugins here")

SCRIPT = """
name: budget
turns:
  - calls: [{tool: Bash, input: {command: "echo one > made"}, id: toolu_1}]
  - calls: [{tool: Bash, input: {command: "echo two >> made"}, id: toolu_2}]
  - text: All done.
"""


def run(world: World, fails: bool = False, **options: Any) -> tuple[dict[str, Any], str]:
    """The result of a run, and the transcript: what the model was shown."""
    (world.cwd / "script.yaml").write_text(SCRIPT)
    settings = json.dumps({"pluginConfigs": {"time-budget": {"options": options}}})
    command = [sys.executable, "-m", "kernel", "-p", "go", "--output-format", "json", "--plugin-dir", str(EXAMPLE),
               "--settings", settings, "--allowedTools", "Bash"]
    env = {**os.environ, "KERNEL_PROVIDER": "script", "KERNEL_SCRIPT": str(world.cwd / "script.yaml")}
    done = subprocess.run(command, cwd=world.cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=env)
    assert ("PreToolUse:Bash hook error" in done.stderr) is fails
    result: dict[str, Any] = json.loads(done.stdout)
    (transcript,) = world.config.glob(f"projects/*/{result['session_id']}.jsonl")
    return result, transcript.read_text()


def test_the_model_is_told_what_is_left_after_each_tool(world: World) -> None:
    result, transcript = run(world, seconds=1000, last_phase=10)
    assert result["result"] == "All done." and (world.cwd / "made").read_text() == "one\ntwo\n"
    assert "You have 1000 seconds" in transcript
    assert transcript.count(" seconds of 1000 are left") == 2
    assert not list(world.config.rglob("*.deadline")), "the end of the session takes the clock away"


def test_in_the_last_phase_no_new_tool_is_started_and_the_model_can_still_answer(world: World) -> None:
    result, transcript = run(world, seconds=1000, last_phase=2000)
    assert result["result"] == "All done." and not (world.cwd / "made").exists()
    assert "no new tool is started. Answer now" in transcript
    assert [d["tool_use_id"] for d in result["permission_denials"]] == ["toolu_1", "toolu_2"]


def test_the_deadline_ends_the_run(world: World) -> None:
    result, _ = run(world, seconds=-1, last_phase=-10)
    assert result["terminal_reason"] == "hook_stopped" and not (world.cwd / "made").exists()
    assert "time budget" in result["result"] and result["num_turns"] == 1


def test_a_command_cannot_run_past_the_deadline(world: World) -> None:
    """A call may last two minutes; this budget ends before, so the call gets less. It still needs permission."""
    event = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "make"}}
    env = {**os.environ, "CLAUDE_PLUGIN_DATA": str(world.root / "data"), "CLAUDE_PLUGIN_OPTION_SECONDS": "90"}
    done = subprocess.run([sys.executable, str(EXAMPLE / "budget.py")], input=json.dumps(event), env=env, capture_output=True,
                          text=True, check=True)
    own = json.loads(done.stdout)["hookSpecificOutput"]
    assert own["updatedInput"]["command"] == "make" and 80_000 < own["updatedInput"]["timeout"] <= 90_000
    assert "permissionDecision" not in own


def test_a_budget_that_cannot_be_kept_refuses(world: World) -> None:
    result, transcript = run(world, fails=True, seconds="soon", last_phase=1)
    assert not (world.cwd / "made").exists() and "set to refuse" in transcript
    assert result["permission_denials"]
