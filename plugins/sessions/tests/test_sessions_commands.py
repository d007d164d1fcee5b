"""``kernel sessions ...`` and what is typed: list, show, check, repair, export, rename, tag, delete, /rename, /tag, /clear."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kernel import ConversationReset, hookimpl
from kernel.cli import main
from kernel.testing import Kit, module, text


@pytest.fixture
def run(home: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Any:
    monkeypatch.chdir(home.cwd)

    def call(*args: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["sessions", *args])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture
def talk(home: Any) -> Any:
    return home.begin(home.prompt("Where is it?"), home.answer("I look.", home.call("t1", command="ls")),
                      home.result("t1", "here"), home.answer("```\nHere.\n```"))


def test_list_names_what_a_person_knows(home: Any, run: Any, talk: Any) -> None:
    named = home.begin(home.prompt("x"), home.answer("y"), name="A name")
    code, out, _ = run("list")
    assert code == 0 and "A name" in out and "Where is it?" in out and out.splitlines()[-1].startswith("2 sessions")
    rows = json.loads(run("list", "--json")[1])
    assert [r["session"] for r in rows] == [named.session_id, talk.session_id] and rows[0]["title"] == "A name"
    assert len(json.loads(run("list", "--json", "--limit", "1")[1])) == 1


def test_a_list_steers_no_terminal(home: Any, run: Any) -> None:
    home.begin(home.prompt("a\x1b]0;stolen\x07\x9b2J\u202eb"), home.answer("y"))
    _, out, _ = run("list", "--all")
    assert "stolen" in out and not set("\x1b\x07\x9b\u202e") & set(out)


def test_what_was_said_steers_no_terminal_and_goes_into_a_pipe_as_it_is(home: Any, run: Any) -> None:
    said = "a\x1b]0;stolen\x07\x9b2J\u202eb\tc\nd"
    talk = home.begin(home.prompt(said), home.answer("y"))
    with Path(talk.path).open("a") as file:
        file.write('{"type":"bad\x9b2J"\n')
    for words in (["show"], ["show", "--json"], ["check"], ["export"], ["export", "--format", "jsonl"]):
        shown = on_a_terminal("sessions", *words, talk.session_id)
        assert shown.strip() and not set("\x1b\x07\x9b\u202e") & set(shown), words
    assert "b\tc\nd" in on_a_terminal("sessions", "show", talk.session_id).replace("\r", "")
    assert said in run("show", talk.session_id)[1]


def on_a_terminal(*args: str) -> str:
    """What a command prints there, warnings included."""
    ours, theirs = pty.openpty()
    with open(ours, "rb", buffering=0) as out:
        running = subprocess.Popen([sys.executable, "-m", "kernel", *args],
                                   stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
        os.close(theirs)
        parts = []
        with suppress(OSError):  # how a terminal ends
            while part := out.read(65_536):
                parts.append(part)
        running.wait(60)
    return b"".join(parts).decode()


def test_rename_tag_and_delete(home: Any, run: Any, talk: Any) -> None:
    assert run("rename", talk.session_id[:8], "The  search")[0] == 0
    assert run("tag", "The search", "red\u200b")[0] == 0
    row = json.loads(run("list", "--json")[1])[0]
    assert (row["title"], row["tag"]) == ("The search", "red")
    again = home.open(resume="The search")
    again.close()
    assert again.session_id == talk.session_id
    assert run("tag", talk.session_id)[0] == 0 and json.loads(run("list", "--json")[1])[0]["tag"] is None
    code, _, err = run("rename", talk.session_id, " ")
    assert code == 1 and "empty name" in err
    Path(talk.path).with_suffix("").mkdir()
    code, out, _ = run("delete", "--yes", talk.session_id)
    assert code == 0 and talk.path in out and not Path(talk.path).exists() and not Path(talk.path).with_suffix("").exists()
    assert run("delete", "--yes", talk.session_id)[0] == 1


def test_a_title_given_behind_a_torn_line_counts(home: Any, run: Any, talk: Any) -> None:
    with Path(talk.path).open("a") as file:
        file.write('{"type":"user","mess')
    run("rename", talk.session_id, "Whole")
    again = home.open(resume="Whole")
    assert again.session_id == talk.session_id


def test_a_running_session_is_not_deleted_or_repaired(home: Any, run: Any, talk: Any) -> None:
    running = home.open(resume=talk.session_id)
    for word, more in (("delete", ["--yes"]), ("repair", [])):
        code, _, err = run(word, *more, talk.session_id)
        assert code == 1 and "open in another process" in err and Path(talk.path).exists()
    running.close()
    assert run("repair", talk.session_id)[0] == 0


def test_show_and_export(run: Any, talk: Any, tmp_path: Path) -> None:
    code, out, _ = run("show", talk.session_id)
    assert code == 0 and "[you] Where is it?" in out and 'Bash {"command": "ls"}' in out and "here" in out
    markdown = run("export", talk.session_id)[1]
    assert "## Prompt\n\nWhere is it?" in markdown and "## Answer" in markdown and "```json  Bash" in markdown
    assert [m["type"] for m in json.loads(run("export", talk.session_id, "--format", "json")[1])["messages"]] == [
        "user", "assistant", "user", "assistant"]
    code, out, err = run("export", talk.session_id, "--format", "jsonl", "-o", str(tmp_path / "x.jsonl"))
    assert code == 0 and out == "" and len((tmp_path / "x.jsonl").read_text().splitlines()) == 4
    assert run("export", talk.session_id, "--format", "pdf")[0] == 1
    assert run("show", "nobody")[0] == 1 and run("show")[0] == 2


def damaged(talk: Any) -> Path:
    """A torn line in the middle, zero bytes, a lost parent, a message that is none, an open call, a torn end."""
    path = Path(talk.path)
    lines = path.read_bytes().split(b"\n")
    lines[2] = lines[2][:50]
    lines.insert(1, b"\0" * 20)
    path.write_bytes(b"\n".join(lines[:4]) + b'\n{"type":"user","uuid":"u","parentUuid":null,"message":5}\n{"type":"us')
    return path


def test_check_says_what_is_wrong_and_repair_mends_it(home: Any, run: Any, talk: Any, said: Any) -> None:
    assert run("check")[0] == 0
    path = damaged(talk)
    before = path.read_bytes()
    code, out, _ = run("check")
    assert code == 1 and {"damaged", "torn", "open-call"} <= {line.split(": ")[1] for line in out.splitlines()[:-1]}, out
    assert all(f["problem"] for f in json.loads(run("check", "--json", talk.session_id)[1]) if f["kind"] != "branch")
    assert run("repair", "--dry-run", talk.session_id)[0] == 0 and path.read_bytes() == before
    code, out, _ = run("repair", talk.session_id)
    assert code == 0 and "the call t1 got a result" in out
    assert run("check")[0] == 0 and run("repair", talk.session_id)[1] == "Nothing to mend.\n"
    assert path.with_name(f"{path.name}.before-repair").read_bytes() == before
    again = home.open(resume=talk.session_id)
    assert said(again)[0] == "Where is it?" and said(again)[-1].startswith("t1=The call was cut off") and not again.problems


def test_repair_links_over_what_is_lost(home: Any, run: Any, said: Any) -> None:
    session = home.begin(*[entry for n in range(4) for entry in (home.prompt(f"p{n}"), home.answer(f"a{n}"))])
    path = Path(session.path)
    lines = path.read_bytes().split(b"\n")
    lines[3] = b"rubbish"
    path.write_bytes(b"\n".join(lines))
    assert run("repair", session.session_id)[0] == 0
    parents = [json.loads(raw).get("parentUuid") for raw in path.read_text().splitlines()]
    assert json.loads(lines[2])["uuid"] in parents
    assert said(home.open(resume=session.session_id)) == ["p0", "a0", "p1", "p2", "a2", "p3", "a3"]


def test_rename_and_tag_are_typed(home: Any) -> None:
    kit = Kit(home.cwd, [text("hello")], installed=["sessions"], persist=True)
    run = kit.play("hi", "/rename The  one", "/tag red", "/rename")
    assert run.result.is_error and len(run.requests) == 1
    again = home.open(resume="The one")
    assert again.session_id == run.session.id
    again.close()


def test_clear_begins_another_conversation(home: Any, said: Any) -> None:
    events: list[Any] = []

    @hookimpl
    def session_start(event: Any) -> None:
        events.append(("start", event.source, event.session_id))

    @hookimpl
    def session_end(event: Any) -> None:
        events.append(("end", event.reason, event.session_id))

    kit = Kit(home.cwd, [text("one"), text("two")], hooks={"ears": module(session_start=session_start, session_end=session_end)},
              installed=["sessions"], persist=True)

    async def go() -> None:
        session = kit.open()
        await session.submit("first")
        old, old_path = session.id, session.transcript.path
        session.set_title("Mine")
        result = await session.submit("/clear")
        assert len(kit.model.requests) == 1 and result.session_id == session.id != old
        (reset,) = [m for m in kit.outputs if isinstance(m, ConversationReset)]
        assert (reset.session_id, reset.new_conversation_id) == (old, session.id)
        await session.submit("second")
        assert [m["content"][-1]["text"] for m in kit.model.requests[1]["messages"]] == ["second"]
        assert kit.model.requests[1]["system"] == kit.model.requests[0]["system"]
        assert events == [("start", "startup", old), ("end", "clear", old), ("start", "clear", session.id)]
        assert session.transcript.path != old_path and session.title == "Mine"
        await session.close()
        for id, words in ((old, ["first", "one"]), (session.id, ["second", "two"])):
            again = home.open(resume=id)
            assert said(again) == words and again.restored.title == "Mine"
            again.close()
        assert not list((home.config / "sessions").glob("*.json"))

    import anyio

    anyio.run(go)


def test_a_generated_title_stays_behind(home: Any, talk: Any) -> None:
    with Path(talk.path).open("a") as file:
        file.write(json.dumps({"type": "ai-title", "aiTitle": "Made up", "sessionId": talk.session_id}) + "\n")
    run = Kit(home.cwd, [text("x")], installed=["sessions"], persist=True, resume=talk.session_id).play("/clear")
    assert run.session.title is None


def test_an_entry_that_is_missing_is_said_and_repair_links_over_it(home: Any, run: Any, said: Any) -> None:
    session = home.begin(*[entry for n in range(3) for entry in (home.prompt(f"p{n}"), home.answer(f"a{n}"))])
    path = Path(session.path)
    lines = path.read_bytes().split(b"\n")
    del lines[2]
    path.write_bytes(b"\n".join(lines))
    again = home.open(resume=session.session_id)
    again.close()
    assert said(again) == ["a1", "p2", "a2"] and "line 3: the entry before it is not in the file" in again.problems[0]
    assert run("check", session.session_id)[0] == 1 and run("repair", session.session_id)[0] == 0
    again = home.open(resume=session.session_id)
    again.close()
    assert said(again) == ["p0", "a0", "a1", "p2", "a2"] and not again.problems
