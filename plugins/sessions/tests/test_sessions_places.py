"""Options, places and running sessions (sessions contract, sections 1, 3 and 4.1)."""

from __future__ import annotations

import json
import subprocess
import unicodedata
import uuid
from pathlib import Path
from typing import Any

import pytest
from kernel_sessions.paths import project_name, worktrees

from kernel import SessionError, UsageError

UNKNOWN = "11111111-2222-4333-8444-555555555550"
CHOSEN = "11111111-2222-4333-8444-555555555555"


# -- options --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("options", [
    {"session_id": "not-a-uuid"}, {"fork_session": True}, {"resume_at": UNKNOWN}, {"resume": " "},
    {"resume": UNKNOWN, "session_id": CHOSEN}, {"continue_session": True, "session_id": CHOSEN},
])
def test_options_that_contradict_each_other_are_refused(home: Any, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        home.open(**options)


def test_a_chosen_id_is_used_once(home: Any) -> None:
    session = home.begin(home.prompt("a"), session_id=CHOSEN.upper())
    assert session.session_id == CHOSEN and Path(session.path).name == f"{CHOSEN}.jsonl"
    other = home.root / "other"
    other.mkdir()
    with pytest.raises(SessionError, match="already in use"):
        home.open(session_id=CHOSEN, cwd=other)


@pytest.mark.parametrize(("environment", "options", "kept"), [
    ({}, {"persist": False}, False),
    ({"CLAUDE_CODE_SKIP_PROMPT_HISTORY": "1"}, {}, False),
    ({"CLAUDE_CODE_SKIP_PROMPT_HISTORY": "0"}, {}, True),
    ({"CLAUDE_CODE_CHILD_SESSION": "1"}, {"print_mode": False}, False),
    ({"CLAUDE_CODE_CHILD_SESSION": "1"}, {"print_mode": True}, True),
    ({"CLAUDE_CODE_CHILD_SESSION": "1", "CLAUDE_CODE_FORCE_SESSION_PERSISTENCE": "true"}, {"print_mode": False}, True),
])
def test_which_runs_are_kept(home: Any, monkeypatch: Any, environment: dict[str, str], options: dict[str, Any],
                             kept: bool) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    session = home.begin(home.prompt("a"), **options)
    assert session.path.endswith(f"{session.session_id}.jsonl")
    assert Path(session.path).exists() is kept and home.config.exists() is kept


def test_without_persistence_a_session_is_read_and_not_touched(home: Any, said: Any) -> None:
    session = home.begin(home.prompt("a"))
    path = Path(session.path)
    path.write_bytes(path.read_bytes() + b'{"type":"us')
    before = path.read_bytes()
    again = home.open(resume=session.session_id, persist=False)
    again.append([home.prompt("b")], cwd=str(home.cwd))
    again.set("custom-title", "x")
    again.close()
    assert said(again) == ["a"] and path.read_bytes() == before


@pytest.mark.parametrize("value", ["off", "turn", "entry"])
def test_each_durability_writes_the_same_file(home: Any, read_lines: Any, value: str) -> None:
    home.values = {"kernel": {"sessions": {"fsync": value}}}
    session = home.begin(home.prompt("a"), home.answer("b"))
    assert not session.problems and len(read_lines(session)) == 2


def test_an_unknown_durability_is_reported(home: Any) -> None:
    home.values = {"kernel": {"sessions": {"fsync": "always"}}}
    assert "kernel.sessions.fsync" in home.open().problems[0]


# -- places ---------------------------------------------------------------------------------------------------------------
def test_odd_working_directories_keep_their_sessions(home: Any, said: Any) -> None:
    composed = unicodedata.normalize("NFC", "Übung")
    long = home.root / ("a b" * 30) / ("c" * 150)
    names = {"spaces": home.root / "two words", "nfd": home.root / unicodedata.normalize("NFD", composed), "long": long}
    for word, place in names.items():
        place.mkdir(parents=True)
        home.begin(home.prompt(word), cwd=place)
    link = home.root / "link"
    link.symlink_to(names["spaces"])
    assert said(home.open(continue_session=True, cwd=link)) == ["spaces"]
    assert said(home.open(continue_session=True, cwd=long)) == ["long"]
    assert said(home.open(continue_session=True, cwd=names["nfd"])) == ["nfd"]
    folders = [p.name for p in (home.config / "projects").iterdir()]
    assert all(f.isascii() and len(f) <= 210 for f in folders), folders
    assert project_name(str(names["nfd"])).endswith("--bung")


def test_a_long_name_is_found_whatever_hash_it_has(home: Any, said: Any) -> None:
    mine, neighbour = home.root / ("d" * 220), home.root / ("d" * 220 + "x")
    mine.mkdir(), neighbour.mkdir()
    session = home.begin(home.prompt("mine"), cwd=mine)
    folder = Path(session.path).parent
    folder.rename(folder.with_name(f"{folder.name[:200]}-otherhash"))
    home.begin(home.prompt("not mine"), cwd=neighbour)
    assert said(home.open(continue_session=True, cwd=mine)) == ["mine"]
    assert said(home.open(resume=session.session_id, cwd=mine)) == ["mine"]


@pytest.mark.parametrize(("path", "name"), [
    ("/", "-"), ("/a/b_c.d", "-a-b-c-d"),
    ("/" + "e" * 199, "-" + "e" * 199), ("/" + "e" * 200, "-" + "e" * 199 + "-ucs6n"),
])
def test_names_of_projects(path: str, name: str) -> None:
    assert project_name(path) == name


def test_a_fixed_project_name_counts_only_with_a_configuration_directory(home: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("CLAUDE_CODE_PROJECT_DIR_NAME", "fixed_1")
    assert Path(home.open().path).parent.name == "fixed_1"
    monkeypatch.setenv("CLAUDE_CODE_PROJECT_DIR_NAME", "../up")
    assert Path(home.open().path).parent.name == project_name(str(home.cwd))
    monkeypatch.setenv("CLAUDE_CODE_PROJECT_DIR_NAME", "fixed_1")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    monkeypatch.setenv("HOME", str(home.root))
    assert Path(home.open(persist=False).path).parent.name == project_name(str(home.cwd))


def git(where: Path, *args: str) -> None:
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args], cwd=where, check=True,
                   capture_output=True)


def test_sessions_are_found_from_every_worktree(home: Any, said: Any) -> None:
    git(home.cwd, "init", "-q", "-b", "main")
    git(home.cwd, "commit", "-q", "--allow-empty", "-m", "first")
    tree = home.root / "tree"
    git(home.cwd, "worktree", "add", "-q", "-b", "side", str(tree))
    assert {Path(r) for r in worktrees(str(tree))} == {Path(r) for r in worktrees(str(home.cwd))} == {home.cwd, tree}
    inside = tree / "deep"
    inside.mkdir()
    session = home.begin(home.prompt("a"), name="In main")
    assert home.open(resume="In main", cwd=inside).session_id == session.session_id
    copy = home.config / "projects" / "elsewhere" / f"{session.session_id}.jsonl"
    copy.parent.mkdir()
    copy.write_bytes(Path(session.path).read_bytes())
    assert home.open(resume=session.session_id, cwd=inside).path == session.path, "a worktree's comes before all others"


def test_the_branch_is_read_from_git_files(home: Any, read_lines: Any) -> None:
    git(home.cwd, "init", "-q", "-b", "feature/x")
    git(home.cwd, "commit", "-q", "--allow-empty", "-m", "first")
    tree = home.root / "tree"
    git(home.cwd, "worktree", "add", "-q", "-b", "side", str(tree))
    session = home.open()
    session.append([home.prompt("a")], cwd=str(home.cwd))
    session.append([home.answer("b")], cwd=str(tree))
    git(home.cwd, "checkout", "-q", "--detach")
    session.append([home.prompt("c")], cwd=str(home.cwd))
    session.append([home.prompt("d")], cwd=str(home.root))
    session.close()
    assert [e["gitBranch"] for e in read_lines(session)] == ["feature/x", "side", "HEAD", ""]


# -- running sessions -----------------------------------------------------------------------------------------------------
def test_a_running_session_has_a_file_until_it_ends(home: Any) -> None:
    session = home.open()
    (path,) = (home.config / "sessions").iterdir()
    assert json.loads(path.read_text())["sessionId"] == session.session_id and path.stat().st_mode & 0o777 == 0o600
    stale = path.with_name(f"{uuid.uuid4()}.4000000.json")
    stale.write_text(json.dumps({**json.loads(path.read_text()), "pid": 4_000_000}))
    session.close()
    assert list(path.parent.iterdir()) == [], "its own, and what a killed process left"


def test_a_second_process_on_one_session_is_told(home: Any) -> None:
    session = home.begin(home.prompt("a"))
    running = home.open(resume=session.session_id)
    (path,) = (home.config / "sessions").iterdir()
    with subprocess.Popen(["sleep", "60"]) as other:
        born = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19]
        fake = path.with_name(f"{session.session_id}.{other.pid}.json")
        fake.write_text(json.dumps({**json.loads(path.read_text()), "pid": other.pid, "born": born}))
        assert str(other.pid) in home.open(resume=session.session_id).problems[0]
        other.kill()
    running.close()
