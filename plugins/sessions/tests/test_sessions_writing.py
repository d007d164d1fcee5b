"""What reaches the disk, and what a kill, a full disk or another writer does to it (sessions contract, section 3)."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kernel_sessions.linefile import completion, repair
from kernel_sessions.reader import WINDOW

WRITER = textwrap.dedent("""\
    import sys
    from pathlib import Path
    from kernel import Clock, Entry, Options, Settings
    from kernel_sessions.store import FileStore

    cwd, resume, word, count, size = sys.argv[1:]
    clock = Clock()
    settings = Settings([], [], config_dir=Path("."), project_root=Path(cwd), trusted=False)
    session = FileStore().open(Options(cwd=Path(cwd), resume=resume or None), settings)
    print(session.session_id, len(session.restored.messages), flush=True)
    for number in range(int(count)):
        text = f"{word}{number} " + "\\u00e4" * int(size)
        entries = [Entry(type=kind, uuid=clock.new_id(), message={"role": kind, "content": text})
                   for kind in ("user", "assistant")]
        session.append(entries, cwd=cwd)
        session.set("last-prompt", text[:200])
        print(number, flush=True)
    session.close()
    """)


def writer(home: Any, *, resume: str = "", word: str = "w", count: int = 1_000_000, size: int = 300) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(home.cwd), resume, word, str(count), str(size)],
                            stdout=subprocess.PIPE, text=True, env={**os.environ, "CLAUDE_CONFIG_DIR": str(home.config)})


def parsed(path: Path) -> list[dict[str, Any]]:
    """All lines; only the last may be torn. (A line may be empty: a writer closed what another was about to close.)"""
    *lines, last = path.read_bytes().split(b"\n")
    entries = [json.loads(line) for line in lines if line]
    return entries + ([json.loads(last)] if last.endswith(b"}") else [])


def first_word(entry: dict[str, Any]) -> str:
    return str(entry["message"]["content"]).partition(" ")[0]


# -- kill -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [300, 200_000])
def test_a_killed_writer_loses_nothing_that_it_was_done_with(home: Any, said: Any, size: int) -> None:
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(10**6)))
    print("SEED =", seed)
    rng = random.Random(seed)
    session_id, told = "", 0
    for _ in range(6):
        process = writer(home, resume=session_id, word="k", size=size)
        assert process.stdout is not None
        found, restored = process.stdout.readline().split()
        assert int(restored) >= told, "a later process finds everything that was acknowledged"
        session_id = found
        stop = rng.randrange(1, 40)
        done = -1
        for line in process.stdout:
            done = int(line)
            if done >= stop:
                break
        process.send_signal(signal.SIGKILL)
        done = max([done, *(int(rest) for rest in process.stdout.read().split())])
        process.wait()
        (path,) = home.config.glob(f"projects/*/{session_id}.jsonl")
        again = home.open(resume=session_id, persist=False)
        assert len(again.restored.messages) >= told + 2 * (done + 1)
        told = len(again.restored.messages)
    home.open(resume=session_id).close()
    damaged = 0
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            json.loads(line)
        except ValueError:
            damaged += 1
    assert damaged <= 6


# -- several writers ------------------------------------------------------------------------------------------------------
def test_two_processes_on_one_session_tear_no_line_and_lose_no_entry(home: Any) -> None:
    session = home.begin(home.prompt("start"))
    processes = [writer(home, resume=session.session_id, word=word, count=200, size=2000) for word in "xy"]
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    entries = [e for e in parsed(Path(session.path)) if "uuid" in e]
    assert len(entries) == 1 + 2 * 2 * 200
    for word in "xy":
        assert [first_word(e) for e in entries if first_word(e).startswith(word) and e["type"] == "user"] == [
            f"{word}{n}" for n in range(200)]
    home.open(resume=session.session_id)


def test_a_batch_after_a_foreign_torn_line_stands_alone(home: Any, said: Any) -> None:
    session = home.open()
    session.append([home.prompt("one")], cwd=str(home.cwd))
    with Path(session.path).open("ab") as file:
        file.write(b'{"type":"user","text":"\xc3')
    session.append([home.answer("two")], cwd=str(home.cwd))
    session.close()
    assert said(home.open(resume=session.session_id)) == ["one", "two"]
    assert "\ufffd" not in Path(session.path).read_text("utf-8")


def test_a_title_from_outside_is_never_overwritten_by_an_older_one(home: Any) -> None:
    session = home.open(name="Old")
    session.append([home.prompt("one")], cwd=str(home.cwd))
    with Path(session.path).open("a") as file:
        file.write(json.dumps({"type": "custom-title", "customTitle": "New", "sessionId": session.session_id},
                              separators=(",", ":")) + "\n")
        file.write(json.dumps({"type": "tag", "tag": "red", "sessionId": session.session_id}, separators=(",", ":")) + "\n")
    for _ in range(4):
        session.append([home.answer("x" * WINDOW)], cwd=str(home.cwd))
    session.set("last-prompt", "one")
    session.close()
    tail = Path(session.path).read_bytes()[-WINDOW:]
    assert b'"customTitle":"New"' in tail and b'{"type":"tag","tag":"red"' in tail and b'"Old"' not in tail
    assert home.open(resume=session.session_id).restored.title == "New"


def test_listed_facts_stay_within_the_last_64_kib(home: Any) -> None:
    session = home.open()
    session.append([home.prompt("one")], cwd=str(home.cwd))
    session.set("custom-title", "Title")
    session.set("tag", "red")
    rng = random.Random(7)
    for number in range(200):
        session.set("last-prompt", f"prompt {number}")
        session.append([home.answer("x" * rng.choice([10, 1000, 20_000, 100_000]))], cwd=str(home.cwd))
        with Path(session.path).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - WINDOW))
            tail = file.read()
        assert b'"customTitle":"Title"' in tail and b'\n{"type":"tag","tag":"red"' in tail, number
    session.close()
    assert b'"lastPrompt":"prompt 199"' in Path(session.path).read_bytes()[-WINDOW:]
    assert Path(session.path).read_bytes().count(b'"customTitle"') < 200


def test_last_prompts_are_not_written_one_by_one(home: Any, read_lines: Any) -> None:
    session = home.open()
    for number in range(20):
        session.append([home.prompt(f"p{number}")], cwd=str(home.cwd))
        session.set("last-prompt", f"p{number}")
    session.close()
    assert [e["lastPrompt"] for e in read_lines(session) if e["type"] == "last-prompt"] == ["p19"]


def test_a_cleared_tag_is_written_and_stays_cleared(home: Any, read_lines: Any) -> None:
    session = home.open()
    session.append([home.prompt("a")], cwd=str(home.cwd))
    for tag in ("red", "red", ""):
        session.set("tag", tag)
    session.close()
    assert [e["tag"] for e in read_lines(session) if e["type"] == "tag"] == ["red", ""]


def test_a_mode_change_survives_a_kill(home: Any, read_lines: Any) -> None:
    session = home.open()
    session.append([home.prompt("a")], cwd=str(home.cwd))
    session.set("permission-mode", "acceptEdits")
    assert read_lines(session)[-1]["permissionMode"] == "acceptEdits"  # not closed: as a kill would leave it


def test_a_transcript_that_is_removed_while_in_use_is_begun_anew(home: Any, said: Any) -> None:
    session = home.open()
    session.append([home.prompt("one")], cwd=str(home.cwd))
    Path(session.path).unlink()
    session.append([home.answer("two"), home.prompt("three")], cwd=str(home.cwd))
    session.close()
    assert "removed" in session.problems[0]
    assert [e["type"] for e in parsed(Path(session.path))] == ["assistant", "user"]


# -- a disk that refuses --------------------------------------------------------------------------------------------------
@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """The system refuses to let files grow beyond a size, in the middle of a write if need be: a full disk."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("room", [0, 1, 100, 700, 1500])
def test_a_full_disk_is_announced_once_and_costs_nothing_once_there_is_room(home: Any, said: Any, room: int) -> None:
    session = home.open()
    mirrored: list[bytes] = []
    session.observers.append(lambda path, lines: mirrored.extend(lines))
    session.append([home.prompt("p0")], cwd=str(home.cwd))
    with no_file_above(Path(session.path).stat().st_size + room):
        for number in range(1, 6):
            session.append([home.answer(f"a{number}"), home.prompt(f"p{number}")], cwd=str(home.cwd))
        session.set("custom-title", "Kept")
    session.append([home.answer("end")], cwd=str(home.cwd))
    session.close()
    assert len(session.problems) == 1 and "cannot be written" in session.problems[0] and session.path in session.problems[0]
    again = home.open(resume=session.session_id)
    assert said(again) == ["p0", *(w for n in range(1, 6) for w in (f"a{n}", f"p{n}")), "end"]
    assert again.restored.title == "Kept" and not again.problems
    whole = [line for line in Path(session.path).read_bytes().splitlines(keepends=True) if line.endswith(b"}\n")]
    whole = list(dict.fromkeys(whole))  # a write that was cut off right behind a line is repeated with that line
    assert [json.loads(line) for line in mirrored] == [json.loads(line) for line in whole], "a mirror gets each line once"


def test_a_disk_that_stays_full_does_not_end_the_session(home: Any, said: Any) -> None:
    session = home.open()
    session.append([home.prompt("p0")], cwd=str(home.cwd))
    with no_file_above(Path(session.path).stat().st_size + 100):
        session.append([home.answer("lost")], cwd=str(home.cwd))
        session.set("last-prompt", "p0")
        session.close()
    assert len(session.problems) == 1 and said(home.open(resume=session.session_id)) == ["p0"]


def test_a_place_that_cannot_be_made_does_not_end_the_session(home: Any) -> None:
    home.config.mkdir()
    (home.config / "projects").write_text("a file where a directory must be")
    session = home.begin(home.prompt("a"), home.answer("b"))
    assert len(session.problems) == 1


def test_a_mirror_that_fails_is_reported_and_does_no_harm(home: Any, read_lines: Any) -> None:
    session = home.open()

    def broken(path: str, lines: list[bytes]) -> None:
        raise RuntimeError("no")

    session.observers.append(broken)
    session.append([home.prompt("a")], cwd=str(home.cwd))
    assert len(read_lines(session)) == 1 and "RuntimeError" in session.problems[0]


# -- torn characters ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("character", ["a", "ß", "ࠀ", "日", "힣", "\ue000", "😀", "𐀀", "\U0010ffff"])
def test_a_torn_character_is_completed(character: str) -> None:
    encoded = f"xyz{character}".encode()
    for cut in range(3, len(encoded) + 1):
        assert (encoded[:cut] + completion(encoded[:cut][-4:])).decode("utf-8").endswith("\n")


def test_repair_closes_a_torn_file_and_leaves_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{}\n{"a')
    assert repair(path) and path.read_bytes() == b'{}\n{"a\n' and not repair(path)


@pytest.mark.parametrize(("durability", "most"), [("off", 0), ("turn", 1), ("entry", 1)])
def test_one_append_syncs_at_most_once(home: Any, monkeypatch: pytest.MonkeyPatch, durability: str, most: int) -> None:
    """The first one syncs the folder of the new file, too."""
    calls: list[int] = []
    for name in ("fsync", "fdatasync"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda fd, real=real: (calls.append(fd), real(fd))[1])
    home.values = {"kernel": {"sessions": {"fsync": durability}}}
    session = home.open()
    session.append([home.prompt("one"), home.answer("first")], cwd=str(home.cwd))
    for entry in (home.answer(home.call("t1")), home.result("t1"), home.answer("done")):
        calls.clear()
        session.append([entry, home.context("more")] if durability == "entry" else [entry], cwd=str(home.cwd))
        assert len(calls) == (1 if durability == "entry" else most if entry.message["content"][0].get("text") == "done" else 0)
    session.close()
