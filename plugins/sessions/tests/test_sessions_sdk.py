"""Our files and the public SDK's own functions on them, both ways. Needs ``claude-agent-sdk``; skipped without it."""

from __future__ import annotations

import subprocess
import unicodedata
from pathlib import Path
from typing import Any

import pytest

sdk = pytest.importorskip("claude_agent_sdk", reason="pip install claude-agent-sdk to run these")


@pytest.fixture
def talk(home: Any) -> Any:
    """A session with calls side by side, context, an interrupt and a compaction."""
    session = home.open()
    session.set("permission-mode", "default")
    session.append([home.context("rules"), home.prompt("Look\naround.")], cwd=str(home.cwd))
    session.append([home.answer("I look."), home.answer(home.call("t1"), home.call("t2"))], cwd=str(home.cwd))
    session.append([home.result("t2", "b\u2028")], cwd=str(home.cwd))
    session.append([home.result("t1", "a")], cwd=str(home.cwd))
    session.append([home.prompt("[Request interrupted by user]")], cwd=str(home.cwd))
    boundary = home.context("")
    boundary.type, boundary.message = "system", None
    boundary.extra = {"subtype": "compact_boundary", "content": "compacted",
                      "compactMetadata": {"trigger": "auto", "preTokens": 9}}
    session.append([boundary, home.prompt("A summary.", isCompactSummary=True)], cwd=str(home.cwd))
    session.append([home.prompt("Go on.")], cwd=str(home.cwd))
    session.append([home.answer("Done. \x85")], cwd=str(home.cwd))
    session.set("last-prompt", "Go on.")
    session.close()
    return session


def texts(messages: list[Any]) -> list[Any]:
    return [m.message["content"] for m in messages]


def test_our_sessions_are_listed(home: Any, talk: Any) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=home.cwd, check=True)
    second = home.begin(home.prompt("Second prompt."), name="A name")
    infos = {i.session_id: i for i in sdk.list_sessions(directory=str(home.cwd))}
    assert infos.keys() == {talk.session_id, second.session_id}
    first = infos[talk.session_id]
    assert (first.summary, first.first_prompt, first.cwd) == ("Go on.", "Look around.", str(home.cwd))
    assert first.created_at is not None and first.tag is None and first.custom_title is None
    assert infos[second.session_id].custom_title == "A name" and infos[second.session_id].git_branch == "main"


def test_our_messages_are_read_and_match_what_a_resume_restores(home: Any, talk: Any) -> None:
    messages = sdk.get_session_messages(talk.session_id, directory=str(home.cwd))
    assert [(m.type, m.message["content"]) for m in messages] == home.open(resume=talk.session_id).restored.messages
    assert texts(messages)[:2] == ["A summary.", "Go on."] and {m.session_id for m in messages} == {talk.session_id}


def test_a_long_session_shows_its_latest_title_and_tag(home: Any, talk: Any) -> None:
    sdk.rename_session(talk.session_id, "Renamed", directory=str(home.cwd))
    sdk.tag_session(talk.session_id, "red", directory=str(home.cwd))
    again = home.open(resume=talk.session_id)
    assert again.restored.title == "Renamed"
    for _ in range(5):
        again.append([home.answer("x" * 70_000)], cwd=str(home.cwd))
    sdk.rename_session(talk.session_id, "While running", directory=str(home.cwd))
    for _ in range(5):
        again.append([home.answer("x" * 70_000)], cwd=str(home.cwd))
    again.close()
    info = sdk.get_session_info(talk.session_id, directory=str(home.cwd))
    assert (info.custom_title, info.tag) == ("While running", "red")
    sdk.tag_session(talk.session_id, None, directory=str(home.cwd))
    again = home.begin(*[home.answer("x" * 70_000)] * 3, resume=talk.session_id)
    assert sdk.get_session_info(talk.session_id, directory=str(home.cwd)).tag is None


def test_a_title_that_the_sdk_glued_to_a_torn_line_counts(home: Any, talk: Any) -> None:
    with Path(talk.path).open("a") as file:
        file.write('{"type":"user","message":{"role":"us')
    sdk.rename_session(talk.session_id, "Glued", directory=str(home.cwd))
    assert home.open(resume=talk.session_id).restored.title == "Glued"


@pytest.mark.parametrize("word", ["ä", "日", "😀"])
def test_a_session_torn_inside_a_character_is_readable_after_it_was_opened(home: Any, word: str) -> None:
    session = home.begin(home.prompt("before"), home.answer(word * 3))
    path = Path(session.path)
    path.write_bytes(path.read_bytes()[: path.read_bytes().rindex(word.encode()) + 1])
    home.open(resume=session.session_id).close()
    assert texts(sdk.get_session_messages(session.session_id, directory=str(home.cwd))) == ["before"]


def test_a_session_that_the_sdk_forked_is_resumed(home: Any, talk: Any, said: Any) -> None:
    forked = sdk.fork_session(talk.session_id, directory=str(home.cwd)).session_id
    again = home.open(resume=forked)
    assert said(again) == said(home.open(resume=talk.session_id)) and again.restored.title == "Look around. (fork)"
    again.append([home.prompt("more")], cwd=str(home.cwd))
    again.close()
    assert texts(sdk.get_session_messages(forked, directory=str(home.cwd)))[-1] == "more"


def test_a_part_that_the_sdk_forked_is_resumed(home: Any, talk: Any, said: Any) -> None:
    upto = sdk.get_session_messages(talk.session_id, directory=str(home.cwd))[1].uuid
    forked = sdk.fork_session(talk.session_id, directory=str(home.cwd), up_to_message_id=upto, title="Part").session_id
    again = home.open(resume="Part")
    assert again.session_id == forked and said(again) == ["A summary.", "Go on."]


def test_our_fork_is_read_as_we_read_it(home: Any, talk: Any) -> None:
    fork = home.begin(home.prompt("another way"), resume=talk.session_id, fork_session=True)
    messages = sdk.get_session_messages(fork.session_id, directory=str(home.cwd))
    assert [(m.type, m.message["content"]) for m in messages] == home.open(resume=fork.session_id).restored.messages
    assert sdk.get_session_info(fork.session_id, directory=str(home.cwd)).custom_title == "Look around. (fork)"
    again = sdk.fork_session(fork.session_id, directory=str(home.cwd)).session_id
    assert home.open(resume=again).restored.messages == home.open(resume=fork.session_id).restored.messages


def test_a_dead_branch_is_dead_for_both(home: Any, said: Any) -> None:
    entries = [home.prompt("one"), home.answer("1"), home.prompt("two"), home.answer("2")]
    session = home.begin(*entries)
    home.begin(home.prompt("three"), resume=session.session_id, resume_at=entries[1].uuid)
    assert said(home.open(resume=session.session_id)) == ["one", "1", "three"]
    assert [m.uuid for m in sdk.get_session_messages(session.session_id, directory=str(home.cwd))][:2] == [
        entries[0].uuid, entries[1].uuid]
    assert len(sdk.get_session_messages(session.session_id, directory=str(home.cwd))) == 3


def test_a_session_that_the_sdk_deleted_is_gone(home: Any, talk: Any) -> None:
    from kernel import SessionError

    sdk.delete_session(talk.session_id, directory=str(home.cwd))
    with pytest.raises(SessionError):
        home.open(resume=talk.session_id)


@pytest.mark.parametrize("name", ["two words", unicodedata.normalize("NFD", "Übung é"), "d" * 230, "日本語"])
def test_both_file_a_directory_under_one_name(home: Any, name: str) -> None:
    place = home.root / name
    place.mkdir()
    session = home.begin(home.prompt("here"), cwd=place)
    assert [i.session_id for i in sdk.list_sessions(directory=str(place))] == [session.session_id]
    assert sdk.project_key_for_directory(str(place)) == Path(session.path).parent.name


def test_a_prompt_behind_much_context_is_still_the_first_prompt(home: Any) -> None:
    session = home.open()
    session.append([home.context("x" * 200_000), home.prompt("Find me.")], cwd=str(home.cwd))
    (info,) = sdk.list_sessions(directory=str(home.cwd))  # still running: nothing was closed
    assert info.first_prompt == "Find me."
    session.close()
