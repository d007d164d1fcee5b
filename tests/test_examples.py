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


@pytest.mark.parametrize("name", TOUCHED)
def test_an_example_commit_works(name: str, tmp_path: Path) -> None:
    patch = ROOT / "docs" / "examples" / f"{name}.patch"
    touched = set(re.findall(r"^\+\+\+ b/(.+)$", patch.read_text("utf-8"), re.MULTILINE))
    assert touched == TOUCHED[name]
    assert all(f"`{file}`" in (ROOT / "CONTRIBUTING.md").read_text("utf-8") for file in touched)
    shutil.copytree(ROOT / "kernel", tmp_path / "kernel", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tests").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    for command in (["git", "apply", "-C1", str(patch)],
                    [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "tests"]):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ passed", done.stdout) and not re.search(r"failed|skipped", done.stdout)
