"""Forks and cuts (sessions contract, sections 4.3 and 4.4)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kernel_sessions.cut import ResumeRejected

from kernel import SessionError, UsageError

UNKNOWN = "11111111-2222-4333-8444-555555555550"
CHOSEN = "11111111-2222-4333-8444-555555555555"


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
