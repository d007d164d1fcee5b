"""Files go back to what they were at a prompt: edits, commands, links, many prompts, the command line."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kernel_sessions.checkpoints import KEPT, Checkpoints

from kernel import Clock, SessionError
from kernel.testing import Kit, call, installed, text

needs_tools = pytest.mark.skipif(not (installed("tools-files") and installed("tools-shell")),
                                 reason="needs the plugins tools-files and tools-shell")


@pytest.fixture
def kept(home: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true")
    return home


def change(session: Any, path: Path, text: str | None) -> None:
    """What a tool does."""
    session.before_change(str(path))
    if text is None:
        path.unlink()
    else:
        path.write_text(text)


def test_every_prompt_has_its_files(kept: Any) -> None:
    session, a, b, c = kept.open(), kept.cwd / "a", kept.cwd / "b", kept.cwd / "c"
    a.write_text("a0\n")
    c.write_text("c0\n")
    prompts = [kept.prompt(str(n)) for n in range(4)]
    session.append([prompts[0]], cwd=str(kept.cwd))
    change(session, a, "a1\n")
    session.append([prompts[1]], cwd=str(kept.cwd))
    change(session, b, "b1\n")
    change(session, a, "a2\n")
    session.append([prompts[2]], cwd=str(kept.cwd))
    change(session, c, None)
    session.append([prompts[3]], cwd=str(kept.cwd))

    def now() -> list[str | None]:
        return [p.read_text() if p.exists() else None for p in (a, b, c)]

    for again in (session, kept.open(resume=session.session_id)):  # from memory, and from the transcript
        for number, expected in ((3, ["a2\n", "b1\n", None]), (2, ["a2\n", "b1\n", "c0\n"]), (1, ["a1\n", None, "c0\n"]),
                                 (0, ["a0\n", None, "c0\n"]), (3, ["a2\n", "b1\n", None])):
            before = now()
            dry = again.rewind_files(prompts[number].uuid, dry_run=True)
            assert now() == before
            done = again.rewind_files(prompts[number].uuid)
            assert now() == expected and done == dry and "skippedLinks" not in done
    assert done["canRewind"] and done["insertions"] == 2 and done["deletions"] == 2


def test_what_cannot_be_rewound_is_refused_in_the_documented_words(kept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session = kept.open()
    with pytest.raises(SessionError, match="No file checkpoint found for this message"):
        session.rewind_files(Clock().new_id())
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING", "1")
    with pytest.raises(SessionError, match="File rewinding is not enabled"):
        kept.open().rewind_files(Clock().new_id())


@pytest.mark.parametrize("how", ["symlink", "hardlink", "folder", "moved"])
def test_links_and_moved_folders_are_left_alone_and_counted(kept: Any, how: str) -> None:
    outside = kept.root / "outside"
    outside.mkdir()
    (outside / "x").write_text("theirs\n")
    folder = kept.cwd / "d"
    folder.mkdir()
    path = folder / "x"
    path.write_text("old\n")
    session, prompt = kept.open(), kept.prompt("go")
    session.append([prompt], cwd=str(kept.cwd))
    change(session, path, "new\n")
    path.unlink()
    if how == "symlink":
        path.symlink_to(outside / "x")
    elif how == "hardlink":
        os.link(outside / "x", path)
    elif how == "folder":
        path.mkdir()
    else:
        folder.rmdir()
        folder.symlink_to(outside)
    done = session.rewind_files(prompt.uuid)
    assert done["skippedLinks"] == 1 and done["filesChanged"] == [] and (outside / "x").read_text() == "theirs\n"


def test_a_file_that_cannot_be_written_does_not_stop_the_others(kept: Any) -> None:
    session, prompt = kept.open(), kept.prompt("go")
    a, b = kept.cwd / "a", kept.cwd / "b"
    a.write_text("a0")
    b.write_text("b0")
    session.append([prompt], cwd=str(kept.cwd))
    change(session, a, "a1")
    change(session, b, "b1")
    kept_a = session.checkpoints.first[str(a)].file
    (session.checkpoints.folder / kept_a).unlink()
    done = session.rewind_files(prompt.uuid)
    assert done["filesChanged"] == [str(b)] and b.read_text() == "b0" and len(done["failed"]) == 1 and a.read_text() == "a1"


def test_the_newest_hundred_are_kept_and_each_files_first_copy(kept: Any) -> None:
    session, path = kept.open(), kept.cwd / "a"
    path.write_text("0")
    prompts = [kept.prompt(str(n)) for n in range(KEPT + 20)]
    for number, prompt in enumerate(prompts, 1):
        session.append([prompt], cwd=str(kept.cwd))
        change(session, path, str(number))
    for again in (session, kept.open(resume=session.session_id)):
        with pytest.raises(SessionError):
            again.rewind_files(prompts[19].uuid)
        again.rewind_files(prompts[20].uuid)
        assert path.read_text() == "20"
        assert len(again.checkpoints.points) == KEPT
    copies = {p.name.rpartition("@")[2] for p in session.checkpoints.folder.iterdir()}
    assert "v1" in copies and len(copies) == KEPT + 1


def test_a_strangers_transcript_cannot_name_files_elsewhere(kept: Any) -> None:
    secret = kept.root / "secret"
    secret.write_text("s")
    entries = [{"type": "file-history-snapshot", "messageId": "m", "snapshot": {"trackedFileBackups": {
        str(kept.cwd / "a"): {"backupFileName": name, "version": 1}}}}
        for name in ("../../../secret", str(secret), ".hidden", 5, "..")]
    assert [Checkpoints("s", Clock(), [e]).at("m") for e in entries] == [{}] * 5


@needs_tools
def test_edits_and_commands_of_a_run_are_rewound(kept: Any) -> None:
    """Write, Edit and Bash; committed, ignored and untracked files; git's own state stays."""
    def git(*args: str) -> str:
        return subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t.example", *args], cwd=kept.cwd, check=True,
                              capture_output=True, text=True).stdout

    git("init", "-q")
    (kept.cwd / "tracked.txt").write_text("one\r\n")
    (kept.cwd / ".gitignore").write_text("*.log\n")
    (kept.cwd / ".gitattributes").write_text("*.txt text=auto filter=evil\n")
    git("config", "filter.evil.clean", f"touch {kept.root}/pwned; cat")
    git("add", ".gitignore")
    git("commit", "-qm", "x")
    (kept.root / "pwned").unlink(missing_ok=True)
    (kept.cwd / "untracked.txt").write_text("mine")
    before = {p.name: p.read_bytes() for p in kept.cwd.iterdir() if p.is_file()}
    status = git("status", "--porcelain")
    (kept.root / "pwned").unlink(missing_ok=True)
    command = "echo two >> tracked.txt; rm untracked.txt; echo new > new.txt; echo log > x.log"
    kit = Kit(kept.cwd, [[call("Write", "w", file_path=str(kept.cwd / "w.txt"), content="w")],
                         [call("Bash", "b", command=command, description="d")],
                         [call("Bash", "c", command="echo three >> tracked.txt", description="d")], text("done")],
              installed=["sessions", "tools-files", "tools-shell"], persist=True)

    async def go() -> None:
        session = kit.open()
        await session.submit("go", uuid="11111111-2222-4333-8444-555555555555")
        assert (kept.cwd / "tracked.txt").read_bytes() == b"one\r\ntwo\nthree\n" and not (kept.cwd / "untracked.txt").exists()
        done = session.rewind_files("11111111-2222-4333-8444-555555555555")
        assert {os.path.basename(p) for p in done["filesChanged"]} == {"w.txt", "tracked.txt", "untracked.txt", "new.txt"}
        await session.close()

    import anyio

    anyio.run(go)
    after = {p.name: p.read_bytes() for p in kept.cwd.iterdir() if p.is_file()}
    assert after == {**before, "x.log": b"log\n"}  # git ignores it, so nothing can tell
    assert not (kept.root / "pwned").exists(), "a filter of the repository ran"
    assert not list((kept.config / "file-history").glob("*/shadow-*")), "the view on the worktree was left behind"
    assert git("status", "--porcelain") == status


@needs_tools
def test_the_typed_command_and_the_flag(kept: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from kernel.cli import main

    path = kept.cwd / "a.txt"
    kit = Kit(kept.cwd, [[call("Write", "w", file_path=str(path), content="1")], text("done")],
              installed=["sessions", "tools-files"], persist=True)
    run = kit.play("make it", "/rewind", "/rewind 1")
    assert run.text.startswith("1 files put back") and not path.exists() and len(run.requests) == 2
    uuid = next(json.loads(raw)["messageId"] for raw in Path(run.session.transcript.path).read_text().splitlines()
                if "file-history" in raw)
    path.write_text("2")
    monkeypatch.chdir(kept.cwd)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert main(["-p", "--resume", run.session.id, "--rewind-files", uuid]) == 0
    assert not path.exists() and str(path) in capsys.readouterr().out
    assert main(["-p", "--resume", run.session.id, "--rewind-files", Clock().new_id()]) == 1
    assert "No file checkpoint found for this message" in capsys.readouterr().err
    monkeypatch.delenv("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING")
    assert main(["-p", "--resume", run.session.id, "--rewind-files", uuid]) == 1
    assert "File rewinding is not enabled" in capsys.readouterr().err


@needs_tools
@pytest.mark.parametrize("why", ["no repository", "too large"])
def test_where_git_cannot_tell_that_is_said_once_and_edits_are_kept(kept: Any, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel_sessions import shadow

    if why == "too large":
        subprocess.run(["git", "init", "-q"], cwd=kept.cwd, check=True)
        monkeypatch.setattr(shadow, "MOST_FILES", 1)
        for name in ("x", "y"):
            (kept.cwd / name).write_text(name)
    path = kept.cwd / "a.txt"
    kit = Kit(kept.cwd, [[call("Bash", "b1", command="echo 1 > b", description="d")], [call("Bash", "b2", command="echo 2 > b",
              description="d")], [call("Write", "w", file_path=str(path), content="1")], text("done")],
              installed=["sessions", "tools-files", "tools-shell"], persist=True)
    run = kit.play("go", "/rewind 1")
    said = [t for t in run.notices() if "is not kept for rewinding" in t]
    assert len(said) == 1 and (why in said[0] or "no git repository" in said[0])
    assert not path.exists() and (kept.cwd / "b").read_text() == "2\n"


@needs_tools
def test_what_commits_and_checkouts_changed_comes_back(kept: Any) -> None:
    """Only files: the commit stays where it is."""
    def git(*args: str) -> str:
        return subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t.example", *args], cwd=kept.cwd, check=True,
                              capture_output=True, text=True).stdout

    git("init", "-q", "-b", "main")
    (kept.cwd / "f").write_text("main")
    git("add", "f")
    git("commit", "-qm", "one")
    git("checkout", "-qb", "other")
    (kept.cwd / "f").write_text("other")
    git("commit", "-qam", "two")
    command = "git checkout -q main && echo more >> f && git -c user.name=t -c user.email=t@t.example commit -qam three"
    kit = Kit(kept.cwd, [[call("Bash", "b", command=command, description="d")], text("done")],
              installed=["sessions", "tools-files", "tools-shell"], persist=True)
    run = kit.play("go", "/rewind 1")
    assert run.text.startswith("1 files put back") and (kept.cwd / "f").read_text() == "other"
    assert git("log", "--format=%s").split() == ["three", "one"]
