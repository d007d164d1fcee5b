"""``kernel hooks list``: what is configured, and what plugins answer in Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernel.testing import plugin_folder


@pytest.fixture
def listed(tmp_path: Path) -> Any:
    """Run the command in an empty project with one more plugin on the path, whose module must not be imported."""
    site, project = tmp_path / "site", tmp_path / "project"
    project.mkdir()
    plugin_folder(site / "watcher_pkg", "watcher", {"__init__.py": "", "plugin.py": "raise SystemExit('imported')"}, kernel={
        "implements": ["register_tools", "stop", "pre_tool_use"], "provides": {"tools": ["Watch"]}})
    (site / "watcher-1.0.dist-info").mkdir()
    (site / "watcher-1.0.dist-info" / "entry_points.txt").write_text("[kernel.plugins]\nwatcher = watcher_pkg.plugin\n")

    def run(*args: str, code: int = 0) -> str:
        environment = {**os.environ, "PYTHONPATH": str(site), "HOME": str(tmp_path)}
        done = subprocess.run([sys.executable, "-m", "kernel", "hooks", "list", *args], cwd=project, env=environment,
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout

    return run


def test_events_that_a_plugin_answers_in_python_are_listed_without_importing_it(listed: Any) -> None:
    rows = [row for row in json.loads(listed("--json"))["python"] if row["plugin"] == "watcher"]
    assert [(row["event"], row["type"], row["text"]) for row in rows] == [
        ("PreToolUse", "python", "watcher_pkg.plugin.pre_tool_use"), ("Stop", "python", "watcher_pkg.plugin.stop")]
    told = listed()
    assert told.startswith("No hooks are configured in settings; plugins answer:\n")
    assert "[Plugin watcher] python: watcher_pkg.plugin.stop" in told
    assert "register_tools" not in told and "[Plugin command-hooks]" not in told


def test_configured_hooks_come_first(listed: Any) -> None:
    settings = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "echo configured"}]}]}})
    lines = listed("--settings", settings).splitlines()
    assert "echo configured" in lines[0] and not any("No hooks are configured" in line for line in lines)
    assert any("[Plugin watcher]" in line for line in lines[1:])


def test_a_blocked_plugin_is_not_listed(listed: Any) -> None:
    settings = json.dumps({"kernel": {"blocked": ["watcher"]}})
    assert "watcher" not in listed("--settings", settings)
