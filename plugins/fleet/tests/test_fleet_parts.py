"""The rules of the board, the journal at every byte of a crash, copies within bounds, one pace for all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st
from kernel_fleet import journal, outcome, tasks, workspace
from kernel_fleet.board import Board, Limits, Start
from kernel_fleet.journal import Begun, Over, Record, RunFolder
from kernel_fleet.outcome import Outcome
from kernel_fleet.pace import Pace
from kernel_fleet.report import table
from kernel_fleet.tasks import RunOptions, Task
from kernel_fleet.worker import Ended

RAN = Outcome(answered=True, result=True, ok=True, subtype="success", turns=1)


def records(count: int) -> list[Record]:
    return [Record(Task(id=f"t{n}", prompt="x")) for n in range(count)]


def begin(start: Start, at: float) -> Begun:
    begun = Begun(task=start.record.task.id, attempt=start.attempt, session="s", at=at, allotted=start.allotted)
    start.record.begun.append(begun)
    return begun


# -- the board -----------------------------------------------------------------------------------------------------------
ENDS = st.sampled_from(["done", "failed", "transient", "died", "stopped"])


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 4), st.lists(st.tuples(ENDS, st.floats(0, 0.4)), min_size=60, max_size=60),
       st.none() | st.floats(0.1, 3))
def test_every_task_ends_once_and_no_more_is_promised_than_there_is(count: int, seats: int, ends: list[tuple[str, float]],
                                                                    budget: float | None) -> None:
    """Whatever becomes of the attempts: a final task never starts again, retries are bounded, and what is spent and promised
    together never passes the budget, as long as runs keep to their share."""
    all_ = records(count)
    board = Board(all_, Limits(seats=seats, retries=2, budget_usd=budget))
    now, running, promised = 0.0, [], 0.0
    for how, part in ends:
        while len(running) < seats and isinstance(start := board.next(now), Start):
            assert start.record.final is None
            running.append((start.record, begin(start, now)))
            promised = board.spent + sum(b.allotted or 0 for _, b in running)
            assert budget is None or promised <= budget + 1e-9
        if not running:
            break
        record, begun = running.pop(0)
        cost = part * (begun.allotted if begun.allotted is not None else 1.0)
        out = {"done": RAN, "failed": Outcome(answered=True, result=True, subtype="error_max_turns", turns=1),
               "transient": Outcome(answered=True, result=True, transient=True, turns=1)}.get(how, Outcome(answered=True))
        out = msgspec.structs.replace(out, cost_usd=cost)
        ended = None if how == "died" else Ended(exit_code=0, stopped=how == "stopped")
        over = board.judge(begun, record, ended, "gone" if how == "died" else "", out, now)
        record.over.append(over)
        board.ended(record, over, now)
        now += 200.0
    for record in all_:
        assert sum(o.status in journal.FINAL for o in record.over) <= 1
        assert sum(o.status == "again" for o in record.over) <= 2


def test_a_task_that_is_tried_again_waits_and_others_go_on() -> None:
    all_ = records(2)
    board = Board(all_, Limits(seats=1))
    first = board.next(0.0)
    assert isinstance(first, Start)
    over = board.judge(begin(first, 0.0), first.record, None, "gone", Outcome(), 1.0)
    assert over.status == "again" and over.fresh, "there is no answer to go on from"
    first.record.over.append(over)
    board.ended(first.record, over, 1.0)
    second = board.next(1.0)
    assert isinstance(second, Start) and second.record is all_[1]
    assert board.next(1.0) == pytest.approx(2.0) and isinstance(board.next(3.0), Start)


def test_starts_keep_their_distance() -> None:
    board = Board(records(3), Limits(seats=3, starts_per_minute=30))
    assert isinstance(board.next(10.0), Start)
    assert board.next(10.5) == pytest.approx(1.5) and isinstance(board.next(12.0), Start)


def test_a_session_that_cannot_be_taken_up_begins_anew() -> None:
    record = records(1)[0]
    begun = Begun(task="t0", attempt=2, session="s", at=0.0, resumes=True)
    over = Board([record], Limits(seats=1)).judge(begun, record, Ended(exit_code=1), "", Outcome(), 0.0)
    assert over.status == "again" and over.fresh and "could not be taken up" in over.why


# -- the journal ---------------------------------------------------------------------------------------------------------
def test_the_journal_is_read_at_every_byte_of_a_crash(tmp_path: Path) -> None:
    """What was written whole counts, what was torn does not, and what is appended behind it is read."""
    made = RunFolder.create(tmp_path / "f", tmp_path / "t.jsonl", [Task(id="a", prompt="x"), Task(id="b", prompt="y")], None, [])
    lines = [Begun(task="a", attempt=1, session="s", at=1.0), Over(task="a", attempt=1, status="done", at=2.0, text="ü"),
             Begun(task="b", attempt=1, session="s", at=3.0)]
    for line in lines:
        made.append(line)
    made.close()
    path = tmp_path / "f" / "journal.jsonl"
    whole = path.read_bytes()
    ends = [n for n, byte in enumerate(whole, 1) if byte == 10]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        (tmp_path / "f" / "results.jsonl").unlink(missing_ok=True)
        found = RunFolder.open(tmp_path / "f")
        complete = sum(end - 1 <= cut for end in ends)  # a line without its end is whole, too
        assert sum(len(r.begun) + len(r.over) for r in found.records.values()) == complete
        found.append(Over(task="b", attempt=1, status="done", at=4.0))
        found.write_results()
        again = RunFolder.open(tmp_path / "f")
        assert again.records["b"].status == "done" and (again.records["a"].status == "done") == (complete >= 2)
        done = [json.loads(line)["id"] for line in (tmp_path / "f" / "results.jsonl").read_text().splitlines()]
        assert sorted(done) == (["a", "b"] if complete >= 2 else ["b"])
        found.close()


def test_two_processes_do_not_run_one_fleet(tmp_path: Path) -> None:
    made = RunFolder.create(tmp_path / "f", tmp_path / "t.jsonl", [Task(id="a", prompt="x")], None, [])
    code = ("from kernel_fleet.journal import RunFolder\nfrom pathlib import Path\n"
            f"RunFolder.open(Path({str(made.path)!r})).lock()")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "running already" in done.stderr
    made.close()
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


KEYS = ["type", "message", "content", "result", "subtype", "usage", "errors", "num_turns", "total_cost_usd", "is_error",
        "session_id", "input_tokens"]


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300) | st.lists(st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.dictionaries(st.sampled_from(KEYS), inner | st.sampled_from(["assistant", "result", "success"]), max_size=6),
    max_leaves=6), max_size=3).map(lambda found: b"\n".join(json.dumps(v).encode() for v in found)))
def test_no_output_of_a_run_breaks_its_reader(tmp_path_factory: Any, data: bytes) -> None:
    path = tmp_path_factory.mktemp("o") / "out"
    path.write_bytes(data)
    over = Board([], Limits(seats=1)).judge(Begun(task="t", attempt=1, session="s", at=0.0), Record(Task(prompt="x")),
                                            Ended(exit_code=1), "", outcome.read(path), 0.0)
    msgspec.json.encode(over)


def test_a_table_holds_no_formula() -> None:
    record = records(1)[0]
    for text in ("=1", "+1", "-1", "@x", "\t=1", "  =1"):
        record.over = [Over(task="t0", attempt=1, status="done", at=0.0, text=text)]
        assert f"'{text}" in table([record])


# -- workspaces ------------------------------------------------------------------------------------------------------------
def test_a_copy_keeps_inside_and_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (source / "sub" / "a").write_text("a")
    (source / "inside").symlink_to("sub/a")
    (source / "outside").symlink_to("../secret")
    (source / "absolute").symlink_to(tmp_path / "secret")
    os.mkfifo(source / "pipe")
    made = workspace.Workspace(kind="copy", source=str(source), path=str(tmp_path / "w" / "x"))
    folder, told = made.prepare(keep=False)
    assert (Path(folder) / "inside").read_text() == "a" and not os.path.lexists(Path(folder, "outside"))
    assert not os.path.lexists(Path(folder, "absolute")) and not os.path.lexists(Path(folder, "pipe"))
    assert all(name in told[0] for name in ("outside", "absolute", "pipe"))
    (Path(folder) / "sub" / "a").write_text("b")
    assert made.patch(tmp_path / "p") and "+b" in (tmp_path / "p").read_text()
    made.remove()
    assert list((tmp_path / "w").iterdir()) == [] and (source / "sub" / "a").read_text() == "a"
    monkeypatch.setattr(workspace, "MOST_FILES", 0)
    with pytest.raises(workspace.WorkspaceError, match="too much to copy"):
        made.prepare(keep=False)


def test_a_repository_cannot_make_the_fleet_run_its_programs(tmp_path: Path) -> None:
    """Hooks, a file watcher, an external diff and a text filter of the repository's configuration: none of them is started."""
    project = tmp_path / "p"
    project.mkdir()
    (project / "a").write_text("a\n")
    (project / ".gitattributes").write_text("a diff=evil\n")
    mark = tmp_path / "mark"
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\necho $0 >> {mark}\n")
    evil.chmod(0o755)
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m"],
                    ["config", "core.fsmonitor", str(evil)], ["config", "diff.external", str(evil)],
                    ["config", "diff.evil.command", str(evil)], ["config", "diff.evil.textconv", str(evil)]):
        subprocess.run(["git", "-C", str(project), *command], check=True)
    for name in ("post-checkout", "pre-commit", "post-index-change"):
        (project / ".git" / "hooks" / name).write_text(evil.read_text())
        (project / ".git" / "hooks" / name).chmod(0o755)
    made = workspace.Workspace(kind="worktree", source=str(project), path=str(tmp_path / "w" / "x"))
    folder, _ = made.prepare(keep=False)
    (Path(folder) / "a").write_text("b\n")
    assert workspace.is_changed(str(project)) is False
    assert made.patch(tmp_path / "patch") and "+b" in (tmp_path / "patch").read_text()
    made.remove()
    assert not mark.exists()


@pytest.mark.parametrize("ref", ["nothing", "--exec=x", "HEAD:a"])
def test_a_ref_that_is_no_commit_is_named(tmp_path: Path, ref: str) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    made = workspace.Workspace(kind="worktree", source=str(tmp_path), path=str(tmp_path / "w"), ref=ref)
    with pytest.raises(workspace.WorkspaceError, match="no commit"):
        made.prepare(keep=False)


# -- options and pace ------------------------------------------------------------------------------------------------------
def test_options_of_a_task_are_flags_that_kernel_knows() -> None:
    given = RunOptions(model="m", max_turns=3, max_budget_usd=1.0, permission_mode="plan", allowed_tools=["Bash(ls *)", "-x"],
                       disallowed_tools=["Write"], tools=["Read", "Bash"], system_prompt="-s", append_system_prompt="a",
                       effort="low", agent="a", json_schema={"type": "object"}, settings={"a": 1})
    made = tasks.flags(given)
    assert {f.split("=")[0] for f in made} == set(tasks.FLAGS.values())
    assert "--tools=Read,Bash" in made and "--allowedTools=-x" in made and tasks.flags(RunOptions(tools=[])) == ["--tools="]
    told = subprocess.run([sys.executable, "-m", "kernel", "--help"], capture_output=True, text=True, check=True).stdout
    assert all(flag in told for flag in tasks.FLAGS.values())


def test_paths_behind_the_dashes_are_meant_from_where_one_stands(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "x=y.yaml").write_text("")
    given = ["--add-dir", "a b", "gone", "--model=script:x=y.yaml", "--settings", "{}", "--allowedTools", "a b",
             "--verbose", "a b",
             "--model", "script:x=y.yaml", "--plugin-dir=a b", "--system-prompt=a b"]
    assert tasks.absolute(given, tmp_path) == [
        "--add-dir", f"{tmp_path}/a b", "gone", f"--model=script:{tmp_path}/x=y.yaml", "--settings", "{}",
        "--allowedTools", "a b",
        "--verbose", "a b", "--model", f"script:{tmp_path}/x=y.yaml", f"--plugin-dir={tmp_path}/a b", "--system-prompt=a b"]


def test_requests_of_all_processes_share_one_pace(tmp_path: Path) -> None:
    path = str(tmp_path / "pace")
    code = f"from kernel_fleet.pace import Pace; p = Pace(60, {path!r}); print(min(p.take() for _ in range(10)))"
    processes = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(3)]
    assert [p.wait() for p in processes] == [0, 0, 0]
    for process in processes:
        process.communicate()
    assert Pace(60, path).take() > 20, "thirty moments, a second apart, were given away"
    Path(path).write_text("nonsense")
    assert Pace(60, path).take() == 0.0
