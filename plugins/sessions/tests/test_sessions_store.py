"""Start, resume, continue and fork through the store (sessions contract, section 4)."""

from __future__ import annotations

import json
import os
import subprocess
import unicodedata
import uuid
from pathlib import Path
from typing import Any

import pytest
from kernel_sessions.cut import ResumeRejected
from kernel_sessions.paths import project_name, worktrees
from kernel_sessions.store import FileStore

from kernel import SessionError, Transcript, TranscriptStore, UsageError

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


# -- fork -----------------------------------------------------------------------------------------------------------------
def test_a_fork_copies_the_chain_under_new_ids_and_leaves_the_source_alone(home: Any, read_lines: Any, said: Any) -> None:
    source = home.begin(home.prompt("one"), home.answer(home.call("t1")), home.result("t1"), home.answer("done"), name="Plan")
    before = Path(source.path).read_bytes()
    fork = home.open(resume=source.session_id, fork_session=True)
    assert fork.source == "fork" and fork.session_id != source.session_id
    assert not Path(fork.path).exists(), "a fork that says nothing leaves nothing"
    fork.append([home.prompt("two")], cwd=str(home.cwd))
    fork.close()
    assert Path(source.path).read_bytes() == before
    old, new = [e for e in read_lines(source) if "uuid" in e], [e for e in read_lines(fork) if "uuid" in e]
    assert not {e["uuid"] for e in old} & {e["uuid"] for e in new}
    assert [e["parentUuid"] for e in new] == [None, *(e["uuid"] for e in new[:-1])]
    assert {e["sessionId"] for e in read_lines(fork)} == {fork.session_id}
    assert [e["forkedFrom"] for e in new[:-1]] == [{"sessionId": source.session_id, "messageUuid": e["uuid"]} for e in old]
    assert "forkedFrom" not in new[-1] and not any("sourceToolAssistantUUID" in e for e in new)
    assert [e["timestamp"] for e in new[:3]] == [e["timestamp"] for e in old[:3]]
    assert said(home.open(resume=fork.session_id)) == [*said(home.open(resume=source.session_id)), "two"]
    assert home.open(resume=fork.session_id).restored.title == "Plan (fork)"


def test_a_fork_without_a_title_is_named_after_its_first_prompt(home: Any) -> None:
    source = home.begin(home.prompt("What\nnow?"))
    assert home.open(resume=source.session_id, fork_session=True).restored.title == "What now? (fork)"


def test_a_fork_keeps_the_permission_mode(home: Any) -> None:
    source = home.open()
    source.set("permission-mode", "acceptEdits")
    source.append([home.prompt("a")], cwd=str(home.cwd))
    source.close()
    fork = home.begin(home.prompt("b"), resume=source.session_id, fork_session=True)
    assert home.open(resume=fork.session_id).restored.permission_mode == "acceptEdits"


def test_continue_may_fork_under_a_chosen_id(home: Any, said: Any) -> None:
    source = home.begin(home.prompt("a"))
    fork = home.begin(home.prompt("b"), continue_session=True, fork_session=True, session_id=CHOSEN)
    assert fork.session_id == CHOSEN and said(home.open(resume=CHOSEN)) == ["a", "b"]
    again = home.begin(home.prompt("c"), resume=source.session_id, fork_session=True, session_id=CHOSEN)
    assert said(home.open(resume=again.session_id)) == ["a", "c"], "the newer fork counts; the older one stays in the file"
    with pytest.raises(UsageError):
        home.open(resume=CHOSEN, fork_session=True, session_id=CHOSEN)


def test_content_replacements_go_with_a_fork(home: Any, read_lines: Any) -> None:
    source = home.begin(home.prompt("a"))
    with Path(source.path).open("a") as file:
        file.write('{"type":"content-replacement","sessionId":"x","replacements":[{"id":1}]}\n')
        file.write('{"type":"content-replacement","sessionId":"x","replacements":[{"id":2}]}\n')
    fork = home.begin(home.prompt("b"), resume=source.session_id, fork_session=True)
    (copied,) = [e for e in read_lines(fork) if e["type"] == "content-replacement"]
    assert copied["replacements"] == [{"id": 1}, {"id": 2}] and copied["sessionId"] == fork.session_id


# -- cutting --------------------------------------------------------------------------------------------------------------
def two_turns(home: Any) -> tuple[Any, list[Any]]:
    entries = [home.prompt("one"), home.answer("1"), home.prompt("two"), home.answer("2")]
    return home.begin(*entries), entries


def test_a_resume_up_to_an_entry_leaves_the_rest_as_a_dead_branch(home: Any, said: Any) -> None:
    session, entries = two_turns(home)
    cut = home.open(resume=session.session_id, resume_at=entries[1].uuid)
    assert said(cut) == ["one", "1"]
    cut.append([home.prompt("three")], cwd=str(home.cwd))
    cut.close()
    assert said(home.open(resume=session.session_id)) == ["one", "1", "three"]
    assert said(home.open(resume=session.session_id, resume_at=entries[3].uuid)) == ["one", "1", "two", "2"]


def test_a_cut_at_an_unknown_entry_is_an_error(home: Any) -> None:
    session, _ = two_turns(home)
    with pytest.raises(SessionError, match=UNKNOWN):
        home.open(resume=session.session_id, resume_at=UNKNOWN)


def test_the_guard_lets_exactly_the_named_turn_go(home: Any, said: Any) -> None:
    session, entries = two_turns(home)
    before = Path(session.path).read_bytes()
    fork = home.open(resume=session.session_id, resume_at=entries[1].uuid, fork_session=True,
                     extra={"resume_drops_turn": entries[2].uuid})
    assert said(fork) == ["one", "1"] and Path(session.path).read_bytes() == before


@pytest.mark.parametrize("value", ["", "x", 7, UNKNOWN])
def test_the_guard_refuses_what_it_does_not_know(home: Any, value: Any) -> None:
    session, entries = two_turns(home)
    before = Path(session.path).read_bytes()
    with pytest.raises(ResumeRejected) as raised:
        home.open(resume=session.session_id, resume_at=entries[1].uuid, extra={"resume_drops_turn": value})
    assert str(raised.value).startswith("Resume rejected by --resume-drops-turn:")
    assert Path(session.path).read_bytes() == before


def test_the_guard_needs_a_cut(home: Any) -> None:
    session, entries = two_turns(home)
    with pytest.raises(ResumeRejected):
        home.open(resume=session.session_id, extra={"resume_drops_turn": entries[2].uuid})


@pytest.mark.parametrize("more", ["prompt", "queued", "attachment", "notification", "between", "wrong-turn"])
def test_the_guard_refuses_if_more_would_be_lost(home: Any, more: str) -> None:
    entries = [home.prompt("one"), home.answer("1"), home.prompt("two"), home.answer("2")]
    drops, extra = entries[2].uuid, ""
    if more == "prompt":
        entries.append(home.prompt("three"))
    elif more == "between":
        entries.insert(2, home.answer("structured output"))
    elif more == "wrong-turn":
        drops = entries[3].uuid
    elif more == "notification":
        entries.append(home.context("<task-notification>done</task-notification>"))
    elif more == "queued":
        extra = '{"type":"queue-operation","operation":"enqueue","content":"and this"}\n'
    else:
        extra = json.dumps({"type": "attachment", "uuid": UNKNOWN, "parentUuid": entries[3].uuid,
                            "attachment": {"type": "queued_command", "prompt": "and this"}}) + "\n"
    session = home.begin(*entries)
    with Path(session.path).open("a") as file:
        file.write(extra)
    with pytest.raises(ResumeRejected):
        home.open(resume=session.session_id, resume_at=entries[1].uuid, extra={"resume_drops_turn": drops})


def test_context_ahead_of_the_prompt_and_older_dead_branches_do_not_stop_the_guard(home: Any, said: Any) -> None:
    session, entries = two_turns(home)
    third = [home.context("fresh"), home.prompt("three"), home.answer("3"), home.prompt("[Request interrupted by user]")]
    home.begin(*third, resume=session.session_id, resume_at=entries[1].uuid)
    cut = home.open(resume=session.session_id, resume_at=entries[1].uuid, extra={"resume_drops_turn": third[1].uuid})
    assert said(cut) == ["one", "1"]


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
