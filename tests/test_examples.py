"""The two example commits of CONTRIBUTING.md: they fit the tree, touch what they say and no more, and their tests pass."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOUCHED = {
    "an-event": {"kernel/events/tool_call.py", "kernel/batch.py", "tests/test_pre_tool_batch.py"},
    "an-answer-field": {"kernel/events/tool_call.py", "kernel/merge.py", "tests/test_advice.py"},
}


SUITE = ("tests/test_events.py", "tests/test_merge.py", "plugins/command-hooks/tests/test_hooks_facts.py",
         "plugins/command-hooks/tests/test_hooks_try.py", "plugins/command-hooks/tests/test_hooks_answer.py")
"""What knows every event or every answer, and must need no change."""


@pytest.mark.parametrize("name", TOUCHED)
def test_an_example_commit_works_and_nothing_else_needs_a_change(name: str, tmp_path: Path) -> None:
    patch = ROOT / "docs" / "examples" / f"{name}.patch"
    touched = set(re.findall(r"^\+\+\+ b/(.+)$", patch.read_text("utf-8"), re.MULTILINE))
    assert touched == TOUCHED[name]
    assert all(f"`{file}`" in (ROOT / "CONTRIBUTING.md").read_text("utf-8") for file in touched)
    for folder in ("kernel", "tests", "plugins/command-hooks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / file, tmp_path / file)
    shared = os.environ.get("KERNEL_SHARED", str(ROOT.parent / "shared"))
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{tmp_path}/plugins/command-hooks/src", "KERNEL_SHARED": shared,
                   "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    tests = [file for file in touched if file.startswith("tests/")]
    for command in (["git", "apply", "-C1", str(patch)],
                    [sys.executable, "-m", "pytest", "-q", f"--basetemp={tmp_path}/tmp", *tests, *SUITE]):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    assert re.search(r"\d+ passed", done.stdout) and "failed" not in done.stdout
