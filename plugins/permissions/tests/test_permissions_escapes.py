"""Ways around the policy that were tried and must stay closed: each would run, read or write what a person did not allow."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from kernel_permissions.paper import Paper, PaperView
from kernel_permissions.view import RealView

_REPOSITORY = ("HEAD", "objects/x", "refs/x", "config")
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")


def repository(folder: str) -> list[str]:
    return [f"{folder}/{name}" for name in _REPOSITORY]


def real(root: Path, **rules: list[str]) -> Paper:
    """A policy over a real folder."""
    return Paper(view=RealView(str(root.parent / "home")), cwd=str(root), **rules)  # type: ignore[arg-type]


# -- a repository that is not the person's own -----------------------------------------------------------------------------
@pytest.mark.parametrize(("files", "cwd", "expected"), [
    (repository("/proj/app/.git"), "/proj/app", "allow"),
    (repository("/proj/app/.git"), "/proj/app/sub", "allow"),
    (repository("/proj/.git"), "/proj/app/sub", "allow"),
    (["/proj/app/.git"], "/proj/app", "allow"),  # the file of a worktree
    ([], "/proj/app", "allow"),  # no repository at all: git says so
    (repository("/proj/app/sub"), "/proj/app/sub", "ask"),
    ([*repository("/proj/app/.git"), *repository("/proj/app/sub")], "/proj/app/sub", "ask"),
    ([*repository("/proj/app/.git"), *repository("/proj/app/sub")], "/proj/app/sub/deep", "ask"),
    (["/proj/app/HEAD", "/proj/app/commondir"], "/proj/app", "ask"),
    (repository("/proj/app"), "/proj/app", "ask"),  # written file by file
    ([*repository("/proj/app"), "/proj/app/.git/x"], "/proj/app", "ask"),  # a .git that git does not accept
    (repository("/proj/app/.git"), "/proj/app/.git", "ask"),
    (repository("/proj/app/sub/.git"), "/proj/app/sub", "ask"),
    ([*repository("/proj/.git"), "/proj/HEAD"], "/proj/app", "ask"),
])
@pytest.mark.parametrize("command", ["git status", "git diff", "git log -p", "git -C . ls-files -m", "ls | cat; git status"])
def test_git_reads_only_where_the_repository_is_the_persons_own(files: list[str], cwd: str, expected: str, command: str) -> None:
    paper = Paper(view=PaperView(files=files, dirs=["/proj/app/sub/deep"]))
    for mode in ("default", "acceptEdits"):
        assert paper.bash(command, cwd=cwd, mode=mode) == expected
    assert paper.bash(command, cwd=cwd, mode="dontAsk") == ("allow" if expected == "allow" else "deny")


@pytest.mark.parametrize("command", [
    "mkdir -p objects refs && cp f HEAD && git status", "echo x > HEAD; git status", "git status & mv v/* .",
    "bash -c 'cp f HEAD'; git status"])
def test_git_does_not_read_beside_what_may_make_a_repository(command: str) -> None:
    for files in ([], repository("/proj/.git")):
        paper = Paper(view=PaperView(files=["/proj/app/f", *files], dirs=["/proj/app/v"]))
        assert paper.bash(command, mode="acceptEdits") == "ask"


def test_git_reads_beside_edits_where_the_folder_has_its_own_repository() -> None:
    paper = Paper(view=PaperView(files=repository("/proj/app/.git")))
    assert paper.bash("mkdir -p x && git status", mode="acceptEdits") == "allow"


def test_a_repository_behind_a_link_is_not_the_persons_own() -> None:
    view = PaperView(files=[*repository("/proj/app/v"), *repository("/proj/app/w/.git")], links={"/proj/app/.git": "v"})
    assert Paper(view=view).bash("git status") == "ask"
    view = PaperView(files=[*repository("/proj/app/.git"), *repository("/proj/app/v")], links={"/proj/app/l": "v"})
    assert Paper(view=view).bash("git status", cwd="/proj/app/l") == "ask"


@needs_git
def test_a_planted_bare_repository_runs_nothing(tmp_path: Path) -> None:
    """git itself runs the planted command; so the policy must not call this reading."""
    root = tmp_path / "work"
    planted = root / "v"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run(["git", "init", "-q", "--bare", str(planted)], check=True)
    (planted / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n"
                                    f"\tfsmonitor = \"touch '{tmp_path}/ran'; false\"\n")
    paper = real(root)
    assert paper.bash("git status") == "allow"
    assert paper.bash("git status", cwd=str(planted)) == "ask"
    subprocess.run(["git", "status"], cwd=planted, check=False, capture_output=True, env={"PATH": os.environ["PATH"]})
    assert (tmp_path / "ran").exists(), "the trap itself does not work any more"
