"""``kernel skills``: what there is and what is wrong, for people and for programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def kernel(root: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "kernel", "skills", *args], cwd=root, capture_output=True, text=True, timeout=60,
                          env={**os.environ, "CLAUDE_CONFIG_DIR": str(root / "config")}, check=False)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name, text in (("good", "---\ndescription: Fine.\n---\nText.\n"), ("bad", "---\n- a\n---\nText.\n")):
        path = tmp_path / f".claude/skills/{name}/SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return tmp_path


def test_the_list_names_what_is_wrong_and_ends_with_1(place: Path) -> None:
    run = kernel(place, "list")
    assert run.returncode == 1 and "bad/SKILL.md: the frontmatter must be a map" in run.stderr
    assert [line.split()[:3] for line in run.stdout.splitlines()] == [["bad", "project", "user"], ["good", "project", "both"]]
    found = json.loads(kernel(place, "list", "--json").stdout)
    assert [s["name"] for s in found["skills"]] == ["bad", "good"] and len(found["problems"]) == 1


def test_one_is_shown_with_its_text(place: Path) -> None:
    run = kernel(place, "show", "good")
    assert run.returncode == 0 and "description: Fine." in run.stdout and run.stdout.rstrip().endswith("Text.")
    assert json.loads(kernel(place, "show", "good", "--json").stdout)["text"] == "Text.\n"


@pytest.mark.parametrize("args", [("show",), ("show", "none"), ("list", "good"), ("what",)])
def test_wrong_usage_ends_with_2(place: Path, args: tuple[str, ...]) -> None:
    assert kernel(place, *args).returncode == 2
