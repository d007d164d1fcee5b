"""Transcripts of subagents: beside the conversation's, marked as side chains, going on where they stopped."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

META = {"agentType": "scout", "toolUseId": "t1", "parentAgentId": None}


def lines(side: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(side.path).read_text().splitlines()]


def test_entries_are_side_chains_in_a_private_file_of_their_own(home: Any) -> None:
    session = home.begin(home.prompt("main"))
    side = session.child("a1", META)
    side.append([home.prompt("Look."), home.answer(home.call("t1"))], cwd=str(home.cwd))
    side.append([home.result("t1")], cwd=str(home.cwd))
    path = Path(side.path)
    assert path == Path(session.path).with_suffix("") / "subagents" / "agent-a1.jsonl"
    found = lines(side)
    assert all(e["isSidechain"] is True and e["agentId"] == "a1" and e["sessionId"] == session.session_id for e in found)
    assert [e["parentUuid"] for e in found] == [None, *(e["uuid"] for e in found[:-1])]
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert '"isSidechain":true' in path.read_text().splitlines()[0], "readers look for exactly that"
    assert json.loads(path.with_suffix(".meta.json").read_text()) == {"agentType": "scout", "toolUseId": "t1"}
    assert not any(json.loads(line).get("isSidechain") for line in Path(session.path).read_text().splitlines())


def test_it_goes_on_where_it_stopped_and_is_told_what_it_did(home: Any) -> None:
    session = home.begin(home.prompt("main"))
    side = session.child("a1", META)
    side.append([home.prompt("Look."), home.answer({"type": "text", "text": "One tree."})], cwd=str(home.cwd))
    side.close()
    again = session.child("a1", {"agentType": "scout", "name": "eyes"})
    assert [role for role, _ in again.restored.messages] == ["user", "assistant"]
    again.append([home.prompt("More.")], cwd=str(home.cwd))
    found = lines(again)
    assert len(found) == 3 and found[2]["parentUuid"] == found[1]["uuid"]
    assert session.children() == {"a1": {"agentType": "scout", "toolUseId": "t1", "name": "eyes"}}


@pytest.mark.parametrize("agent_id", ["", "../x", "a/b", "a.b", "a" * 65, "a\0"])
def test_an_id_that_is_no_name_of_a_file_is_refused(agent_id: str, home: Any) -> None:
    with pytest.raises(ValueError):
        home.open().child(agent_id, META)


def test_torn_lines_and_broken_sidecars_are_named_or_passed_over(home: Any) -> None:
    session = home.begin(home.prompt("main"))
    side = session.child("a1", META)
    side.append([home.prompt("Look.")], cwd=str(home.cwd))
    side.close()
    with open(side.path, "ab") as file:
        file.write(b'{"type": "user", "uu')
    Path(side.path).with_suffix(".meta.json").write_text("[broken")
    again = session.child("a1", META)
    assert len(again.restored.messages) == 1 and any("line 2" in p for p in again.problems)
    again.append([home.prompt("More.")], cwd=str(home.cwd))
    last = Path(side.path).read_bytes().splitlines()[-1]
    assert json.loads(last)["message"]["content"] == "More." and session.children()["a1"]["agentType"] == "scout"


def test_a_sidecar_that_is_a_link_is_not_followed(home: Any, tmp_path: Path) -> None:
    session = home.begin(home.prompt("main"))
    folder = Path(session.path).with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    target = tmp_path / "target"
    target.write_text("mine")
    os.symlink(target, folder / "agent-a1.meta.json")
    side = session.child("a1", META)
    assert target.read_text() == "mine" and any("cannot be written" in p for p in side.problems)


def test_nothing_is_written_where_nothing_is_kept(home: Any) -> None:
    session = home.open(persist=False)
    side = session.child("a1", META)
    side.append([home.prompt("Look.")], cwd=str(home.cwd))
    side.close()
    assert not Path(side.path).parent.exists()


def test_a_mirror_of_the_session_sees_its_agents_too(home: Any) -> None:
    session = home.begin(home.prompt("main"))
    seen: list[tuple[str, list[dict[str, Any]]]] = []
    session.observers.append(lambda path, raw: seen.append((path, [json.loads(line) for line in raw])))
    side = session.child("a1", META)
    side.append([home.prompt("Look."), home.answer({"type": "text", "text": "x"})], cwd=str(home.cwd))
    assert [path for path, _ in seen] == [side.path, side.path]
    assert seen[0][1] == [{"type": "agent_metadata", "agentType": "scout", "toolUseId": "t1"}] and seen[1][1] == lines(side)
