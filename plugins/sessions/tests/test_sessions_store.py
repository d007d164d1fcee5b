"""Start, resume, continue and fork through the store (sessions contract, section 4)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from kernel_sessions.paths import project_name
from kernel_sessions.store import FileStore

from kernel import SessionError, Transcript, TranscriptStore

UNKNOWN = "11111111-2222-4333-8444-555555555550"
CHOSEN = "11111111-2222-4333-8444-555555555555"


def test_the_store_has_the_shape_that_the_kernel_asks_for(home: Any) -> None:
    store: TranscriptStore = FileStore()
    assert store.name == "files" and isinstance(home.open(), Transcript)


# -- what is on disk ------------------------------------------------------------------------------------------------------
def test_entries_carry_the_documented_fields_and_form_a_chain(home: Any, read_lines: Any) -> None:
    session = home.open()
    session.set("permission-mode", "default")
    session.append([home.context("rules"), home.prompt("Count.")], cwd=str(home.cwd))
    session.append([home.answer(home.call("t1", command="ls"))], cwd=str(home.cwd))
    session.append([home.result("t1")], cwd="/elsewhere")
    session.close()
    mode, *chain = read_lines(session)
    assert mode == {"type": "permission-mode", "permissionMode": "default", "sessionId": session.session_id}
    for entry in chain:
        assert {"type", "uuid", "parentUuid", "sessionId", "timestamp", "cwd", "version", "gitBranch", "userType",
                "entrypoint", "isSidechain", "message"} <= entry.keys()
        assert entry["sessionId"] == session.session_id and entry["isSidechain"] is False and entry["userType"] == "external"
        assert entry["timestamp"].endswith("Z") and len(entry["timestamp"]) == 24
    assert [e["parentUuid"] for e in chain] == [None, *(e["uuid"] for e in chain[:-1])]
    context, prompt, answer, result = chain
    assert context["isMeta"] is True and prompt["message"]["content"] == "Count."
    assert result["cwd"] == "/elsewhere" and result["toolUseResult"] == {"stdout": "ok"}
    assert result["sourceToolAssistantUUID"] == answer["uuid"]


def test_lines_are_compact_and_private(home: Any) -> None:
    session = home.begin(home.prompt('Say {"a": 1}'))
    path = Path(session.path)
    raw = path.read_text()
    assert '"isSidechain":false' in raw and raw.endswith("\n") and '": ' not in raw.replace('\\": ', "")
    assert path.stat().st_mode & 0o777 == 0o600
    for place in (path.parent, path.parent.parent, home.config):
        assert place.stat().st_mode & 0o777 == 0o700, place


def test_a_session_without_a_prompt_leaves_no_transcript(home: Any) -> None:
    session = home.open()
    session.set("permission-mode", "plan")
    session.set("custom-title", "Mine")
    session.close()
    assert not Path(session.path).exists()


def test_close_may_be_called_twice(home: Any, read_lines: Any) -> None:
    session = home.begin(home.prompt("a"))
    before = read_lines(session)
    session.close()
    assert read_lines(session) == before


@pytest.mark.parametrize("value", [
    {1: 2}, {(1, 2): object()}, {"a": {"b", "c"}}, float("nan"), 2**80, b"bytes", "\ud83d half", Path("/x"),
])
def test_whatever_a_tool_returns_becomes_a_line(home: Any, read_lines: Any, value: Any) -> None:
    result = home.result("t1")
    result.extra["toolUseResult"] = value
    session = home.begin(home.prompt("a"), home.answer(home.call("t1")), result)
    assert read_lines(session)[2]["type"] == "user"


def test_a_structure_that_contains_itself_becomes_a_line(home: Any, read_lines: Any) -> None:
    endless: list[Any] = []
    endless.append(endless)
    session = home.begin(home.prompt("a", toolUseResult=endless))
    assert len(read_lines(session)) == 1


def test_characters_at_which_readers_break_lines_are_escaped(home: Any, said: Any) -> None:
    text = "one\u2028two\u2029three\u0085four\x1cfive"
    session = home.begin(home.prompt(text))
    assert len(Path(session.path).read_text("utf-8").splitlines()) == 1
    assert said(home.open(resume=session.session_id)) == [text]


def test_large_context_stands_behind_the_prompt_so_that_listings_find_it(home: Any, read_lines: Any, said: Any) -> None:
    session = home.open()
    rules, prompt = home.context("x" * 100_000), home.prompt("Find me.")
    session.append([rules, prompt], cwd=str(home.cwd))
    session.close()
    first, second, *_ = read_lines(session)
    assert first["uuid"] == prompt.uuid and first["parentUuid"] == rules.uuid == second["uuid"]
    assert said(home.open(resume=session.session_id))[1] == "Find me."


# -- resume ---------------------------------------------------------------------------------------------------------------
def test_resume_brings_back_what_was_recorded(home: Any) -> None:
    entries = [home.prompt("Count."), home.answer("thinking", home.call("t1", command="ls")), home.result("t1", "a b"),
               home.answer("two")]
    session = home.begin(*entries)
    again = home.open(resume=session.session_id)
    assert again.source == "resume" and again.session_id == session.session_id and again.path == session.path
    assert again.restored.messages == [(e.type, e.message["content"]) for e in entries]
    assert again.restored.model == "model-a" and not again.problems


def test_a_resumed_conversation_goes_on_in_the_same_chain(home: Any, read_lines: Any, said: Any) -> None:
    session = home.begin(home.prompt("one"), home.answer("1"))
    again = home.open(resume=session.session_id)
    again.append([home.prompt("two"), home.answer("2")], cwd=str(home.cwd))
    again.close()
    chain = [e for e in read_lines(again) if "uuid" in e]
    assert [e["parentUuid"] for e in chain] == [None, *(e["uuid"] for e in chain[:-1])]
    assert said(home.open(resume=session.session_id)) == ["one", "1", "two", "2"]


def test_a_message_that_is_sent_again_after_a_crash_keeps_the_past(home: Any, read_lines: Any, said: Any) -> None:
    again = home.prompt("again")
    session = home.begin(home.prompt("past"), home.answer("1"), again)
    home.begin(again, home.answer("2"), resume=session.session_id)
    assert said(home.open(resume=session.session_id)) == ["past", "1", "again", "again", "2"]
    uuids = [e["uuid"] for e in read_lines(session)]
    assert len(set(uuids)) == 5, "every reader can follow the chain"


def test_a_resume_alone_changes_nothing(home: Any) -> None:
    session = home.begin(home.prompt("one"), home.answer(home.call("t1")))
    before = Path(session.path).read_bytes()
    again = home.open(resume=session.session_id)
    again.close()
    assert Path(session.path).read_bytes() == before


def test_mode_title_and_model_are_the_last_ones(home: Any) -> None:
    session = home.open()
    session.set("permission-mode", "default")
    session.append([home.prompt("a"), home.answer("b", message={"model": "model-b"})], cwd=str(home.cwd))
    session.set("permission-mode", "acceptEdits")
    session.set("ai-title", "Generated")
    session.set("custom-title", "Chosen")
    session.append([home.answer("no", message={"model": "<synthetic>"})], cwd=str(home.cwd))
    session.close()
    restored = home.open(resume=session.session_id).restored
    assert (restored.permission_mode, restored.title, restored.model) == ("acceptEdits", "Chosen", "model-b")


def test_an_api_error_is_kept_for_people_and_not_for_the_model(home: Any, read_lines: Any, said: Any) -> None:
    error = home.answer("API Error 500", isApiErrorMessage=True, message={"model": "<synthetic>"})
    session = home.begin(home.prompt("a"), error)
    assert any(e.get("isApiErrorMessage") for e in read_lines(session))
    again = home.open(resume=session.session_id)
    assert said(again) == ["a"] and again._stamp.parent == error.uuid


@pytest.mark.parametrize("wanted", [UNKNOWN, "no such name"])
def test_an_unknown_conversation_is_named_in_the_documented_words(home: Any, wanted: str) -> None:
    home.begin(home.prompt("a"))
    with pytest.raises(SessionError) as raised:
        home.open(resume=wanted)
    assert str(raised.value) == f"No conversation found with session ID: {wanted}"


def test_an_empty_file_counts_as_absent(home: Any) -> None:
    session = home.begin(home.prompt("a"))
    Path(session.path).write_bytes(b"")
    with pytest.raises(SessionError):
        home.open(resume=session.session_id)
    assert home.open(session_id=session.session_id).source == "startup"


def test_a_file_without_a_conversation_is_not_found(home: Any) -> None:
    session = home.begin(home.prompt("a"))
    Path(session.path).write_text('{"type":"custom-title","customTitle":"x"}\nnonsense\n')
    with pytest.raises(SessionError, match="No conversation found"):
        home.open(resume=session.session_id)


def test_an_id_is_found_in_another_project_if_only_one_has_it(home: Any) -> None:
    other, third = home.root / "other", home.root / "third"
    other.mkdir(), third.mkdir()
    session = home.begin(home.prompt("far away"), cwd=other)
    again = home.open(resume=session.session_id)
    assert again.path == session.path
    again.append([home.prompt("here")], cwd=str(home.cwd))
    again.close()
    copy = home.config / "projects" / project_name(str(third)) / f"{session.session_id}.jsonl"
    copy.parent.mkdir()
    copy.write_bytes(Path(session.path).read_bytes())
    with pytest.raises(SessionError):
        home.open(resume=session.session_id)
    copy.write_text('{"type":"custom-title","customTitle":"no messages"}\n')
    assert home.open(resume=session.session_id.upper()).path == session.path


def test_a_transcript_without_rights_says_so(home: Any) -> None:
    session = home.begin(home.prompt("a"))
    path = Path(session.path)
    path.unlink()
    path.mkdir()  # root may read every file, but nobody reads a directory
    with pytest.raises(SessionError, match="cannot be read"):
        home.open(resume=session.session_id)


# -- names ----------------------------------------------------------------------------------------------------------------
def test_a_session_is_found_by_its_title(home: Any) -> None:
    first = home.begin(home.prompt("a"), name="Fix the build")
    second = home.open()
    second.append([home.prompt("b")], cwd=str(home.cwd))
    second.set("ai-title", "Fix the docs")
    second.close()
    assert home.open(resume="Fix the build").session_id == first.session_id
    assert home.open(resume="Fix the docs").session_id == second.session_id


def test_a_chosen_title_wins_over_a_generated_one(home: Any) -> None:
    generated = home.open()
    generated.append([home.prompt("a")], cwd=str(home.cwd))
    generated.set("ai-title", "Same")
    generated.close()
    chosen = home.begin(home.prompt("b"), name="Same")
    assert home.open(resume="Same").session_id == chosen.session_id


def test_two_sessions_of_one_name_are_told_apart_by_id(home: Any) -> None:
    first, second = home.begin(home.prompt("a"), name="Same"), home.begin(home.prompt("b"), name="Same")
    with pytest.raises(SessionError) as raised:
        home.open(resume="Same")
    assert first.session_id in str(raised.value) and second.session_id in str(raised.value)


# -- continue -------------------------------------------------------------------------------------------------------------
def test_continue_takes_the_file_that_changed_last(home: Any, said: Any) -> None:
    older, newer = home.begin(home.prompt("older")), home.begin(home.prompt("newer"))
    assert said(home.open(continue_session=True)) == ["newer"]
    os.utime(older.path, (2e9, 2e9))
    assert said(home.open(continue_session=True)) == ["older"]
    assert newer.session_id != older.session_id


def test_continue_passes_over_files_that_hold_no_conversation(home: Any, said: Any) -> None:
    good, aside = home.begin(home.prompt("good")), home.begin(home.prompt("aside"))
    text = Path(aside.path).read_text().replace('"isSidechain":false', '"isSidechain":true')
    Path(aside.path).write_text(text)
    (Path(good.path).parent / f"{UNKNOWN}.jsonl").write_text("")
    (Path(good.path).parent / "notes.jsonl").write_text("{}\n")
    assert said(home.open(continue_session=True)) == ["good"]


def test_continue_without_a_session_starts_one(home: Any) -> None:
    assert home.open(continue_session=True).source == "startup"


def test_continue_stays_in_its_directory(home: Any) -> None:
    other = home.root / "other"
    other.mkdir()
    home.begin(home.prompt("a"), cwd=other)
    assert home.open(continue_session=True).source == "startup"


def test_an_interactive_continue_skips_what_programs_began(home: Any, said: Any, monkeypatch: Any) -> None:
    home.begin(home.prompt("person"), print_mode=False)
    home.begin(home.prompt("print"))
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-py")
    home.begin(home.prompt("sdk"))
    assert said(home.open(continue_session=True, print_mode=False)) == ["person"]
    assert said(home.open(continue_session=True)) == ["sdk"]
