"""Which conversation a file holds, whatever happened to it (sessions contract, sections 2.4 and 4.2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kernel_sessions.chain import Graph, restore
from kernel_sessions.reader import decode, parse, salvage

from kernel import normalise

ID = "11111111-2222-4333-8444-555555555555"


def entry(uuid: str, parent: str | None, kind: str = "user", text: Any = None, **more: Any) -> dict[str, Any]:
    """A chain entry; upper-case kinds of text are lists of blocks."""
    message = {"message": {"role": kind, "content": text if text is not None else uuid}} if kind in ("user", "assistant") else {}
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": ID, "isSidechain": False, **message, **more}


def chain_of(*entries: dict[str, Any]) -> list[str]:
    graph = Graph(parse(Path("x"), b"".join(json.dumps(e).encode() + b"\n" for e in entries)))
    return [str(e["uuid"]) for e in graph.active().entries]


def call(uuid: str, parent: str | None, *ids: str) -> dict[str, Any]:
    return entry(uuid, parent, "assistant", [{"type": "tool_use", "id": i, "name": "Bash", "input": {}} for i in ids])


def result(uuid: str, parent: str | None, *ids: str) -> dict[str, Any]:
    return entry(uuid, parent, "user", [{"type": "tool_result", "tool_use_id": i, "content": f"{i} done"} for i in ids])


@pytest.mark.parametrize(("why", "entries", "expected"), [
    ("one line after the other", [entry("a", None), entry("b", "a", "assistant")], "ab"),
    ("nothing", [], ""),
    ("metadata is no conversation", [{"type": "custom-title", "customTitle": "x", "uuid": "t"}], ""),
    ("of two branches the one that ends later", [entry("a", None), entry("b", "a"), entry("c", "a"), entry("d", "b")], "abd"),
    ("a rewind", [entry("a", None), entry("b", "a"), entry("c", "b"), entry("x", "a")], "ax"),
    ("two writers", [entry("a", None), entry("b", "a"), entry("c", "a"), entry("d", "b"), entry("e", "c")], "ace"),
    ("a branch that is aside loses", [entry("a", None), entry("b", "a"), entry("s", "a", isSidechain=True)], "ab"),
    ("a team's branch loses", [entry("a", None), entry("b", "a"), entry("s", "a", teamName="t")], "ab"),
    ("context on an old entry loses", [entry("a", None), entry("b", "a"), entry("m", "a", isMeta=True)], "ab"),
    ("context on the newest branch does not bring an old one back",
     [entry("a", None), entry("b", "a"), entry("c", "a"), entry("m", "c", isMeta=True)], "acm"),
    ("only context", [entry("m", None, isMeta=True)], "m"),
    ("trailing progress and system entries are no leaves",
     [entry("a", None), entry("b", "a", "assistant"), entry("p", "b", "progress"), entry("s", "p", "system")], "ab"),
    ("progress inside the chain is a link", [entry("a", None), entry("p", "a", "progress"), entry("b", "p")], "apb"),
    ("after a compaction the past is not read",
     [entry("a", None), entry("b", "a"), entry("k", None, "system", subtype="compact_boundary", logicalParentUuid="b"),
      entry("s", "k", isCompactSummary=True), entry("c", "s")], "ksc"),
    ("a compaction that was not finished does not count",
     [entry("a", None), entry("b", "a"), entry("k", None, "system", subtype="compact_boundary", logicalParentUuid="b")], "ab"),
    ("a circle in the past is cut", [entry("a", "b"), entry("b", "a"), entry("c", "b")], "abc"),
    ("nothing but a circle", [entry("a", "b"), entry("b", "a")], "ab"),
    ("an entry that is its own parent", [entry("a", "a")], "a"),
    ("a parent that is not there", [entry("b", "gone"), entry("c", "b")], "bc"),
    ("a parent that is no text", [entry("b", 7), entry("c", "b")], "bc"),  # type: ignore[arg-type]
    ("the child stands before its parent", [entry("b", "a"), entry("a", None)], "ab"),
    ("a uuid twice means its last line", [entry("a", None), entry("b", "a"), entry("b", "a", text="again")], "ab"),
    ("a message that was sent again closes no circle",
     [entry("a", None), entry("b", "a"), entry("c", "b"), entry("b", "c"), entry("d", "b")], "abcbd"),
    ("a message that was sent again at once", [entry("a", None), entry("b", "a"), entry("b", "b"), entry("c", "b")], "abbc"),
])
def test_the_active_conversation(why: str, entries: list[dict[str, Any]], expected: str) -> None:
    assert "".join(chain_of(*entries)) == expected, why


@pytest.mark.parametrize(("why", "entries", "tail"), [
    ("the last message", [entry("a", None), entry("b", "a", "assistant")], "b"),
    ("a system entry below it", [entry("a", None), entry("s", "a", "system")], "s"),
    ("never progress", [entry("a", None), entry("s", "a", "system"), entry("p", "s", "progress")], "s"),
    ("the later of two", [entry("a", None), entry("s", "a", "system"), entry("t", "a", "attachment")], "t"),
])
def test_where_new_entries_hang(why: str, entries: list[dict[str, Any]], tail: str) -> None:
    graph = Graph(parse(Path("x"), b"\n".join(json.dumps(e).encode() for e in entries)))
    assert graph.active().tail == tail, why


@pytest.mark.parametrize(("why", "entries", "expected"), [
    ("each result under its own call",
     [entry("u", None), call("a", "u", "t1"), call("b", "a", "t2"), result("r", "a", "t1"), result("s", "b", "t2"),
      entry("z", "s", "assistant")], "uabrsz"),
    ("results in the order in which they came",
     [entry("u", None), call("a", "u", "t1", "t2", "t3"), result("s", "a", "t2"), result("r", "a", "t1"), result("q", "a", "t3"),
      entry("z", "q", "assistant")], "uasrqz"),
    ("the kill came before the answer",
     [entry("u", None), call("a", "u", "t1", "t2"), result("r", "a", "t1"), result("s", "a", "t2")], "uars"),
    ("a result that led to an answer belongs to its own branch",
     [entry("u", None), call("a", "u", "t1"), result("r", "a", "t1"), entry("b", "r", "assistant"), entry("x", "a")], "uax"),
    ("a subagent's result is not ours",
     [entry("u", None), call("a", "u", "t1"), {**result("r", None, "t1"), "isSidechain": True}, entry("x", "a")], "uax"),
])
def test_results_beside_the_chain_are_not_lost(why: str, entries: list[dict[str, Any]], expected: str) -> None:
    assert "".join(chain_of(*entries)) == expected, why


def test_results_before_a_cut_are_kept_and_later_ones_are_not() -> None:
    entries = [entry("u", None), call("a", "u", "t1", "t2"), result("r", "a", "t1"), result("s", "a", "t2")]
    graph = Graph(parse(Path("x"), b"\n".join(json.dumps(e).encode() for e in entries)))
    upto = {u: chain for u in "ars" if (chain := graph.upto(u))}
    assert {u: "".join(line.uuid for line in c.lines) for u, c in upto.items()} == {"a": "ua", "r": "uar", "s": "uars"}


def test_repeated_and_orphaned_results_leave_a_legal_history() -> None:
    entries = [entry("u", None), call("a", "u", "t1"), result("r", "a", "t1"), result("s", "r", "t1"), result("o", "s", "t9")]
    journal = parse(Path("x"), b"\n".join(json.dumps(e).encode() for e in entries))
    messages, changes = normalise(restore(journal, Graph(journal).active()).messages)
    assert [b["content"] for _, blocks in messages for b in blocks if b["type"] == "tool_result"] == ["t1 done"] and changes


@pytest.mark.parametrize(("entries", "unfinished"), [
    ([entry("a", None)], True),
    ([entry("a", None), entry("b", "a", "assistant")], False),
    ([entry("a", None), call("b", "a", "t1")], True),
    ([entry("a", None), call("b", "a", "t1"), result("c", "b", "t1")], True),
    ([entry("a", None), entry("b", "a", text="[Request interrupted by user]")], False),
])
def test_whether_the_last_turn_came_to_its_end(entries: list[dict[str, Any]], unfinished: bool) -> None:
    assert Graph(parse(Path("x"), b"\n".join(json.dumps(e).encode() for e in entries))).active().unfinished is unfinished


@pytest.mark.parametrize("message", [None, "text", {"role": "user"}, {"content": 7}, {"content": [7, None, "x"]},
                                     {"content": [{"type": "text", "text": None}]}])
def test_messages_of_any_form_are_read(message: Any) -> None:
    journal = parse(Path("x"), json.dumps({**entry("a", None), "message": message}).encode())
    normalise(restore(journal, Graph(journal).active()).messages)


# -- damage ---------------------------------------------------------------------------------------------------------------
def exchange(home: Any, count: int) -> tuple[Any, list[bytes]]:
    """A session of that many entries and its lines."""
    session = home.begin(*(home.prompt(f"p{n}") if n % 2 == 0 else home.answer(f"a{n}") for n in range(count)))
    return session, Path(session.path).read_bytes().splitlines(keepends=True)


def test_a_last_line_torn_at_any_byte_costs_only_that_line(home: Any, said: Any) -> None:
    session, lines = exchange(home, 6)
    path = Path(session.path)
    whole = [line for line in lines if b'"uuid"' in line]
    whole[-1] = whole[-1].replace(b"a5", "ä日😀".encode())
    for cut in range(1, len(whole[-1]) - 1):
        path.write_bytes(b"".join(whole[:-1]) + whole[-1][:cut])
        torn = path.read_bytes()
        again = home.open(resume=session.session_id)
        assert said(again) == ["p0", "a1", "p2", "a3", "p4"]
        assert len(again.problems) == 1 and "line 6" in again.problems[0] and "incomplete" in again.problems[0]
        again.append([home.prompt("next")], cwd=str(home.cwd))
        again.close()
        after = path.read_bytes()
        assert after.startswith(torn), "the bytes of the torn line stay"
        after.decode("utf-8")  # a reader that insists on UTF-8 can read the file
        assert said(home.open(resume=session.session_id)) == ["p0", "a1", "p2", "a3", "p4", "next"]


def test_a_torn_tail_is_closed_on_opening(home: Any) -> None:
    session, lines = exchange(home, 2)
    path = Path(session.path)
    path.write_bytes(b"".join(lines) + b'{"type":"user","mess')
    home.open(resume=session.session_id)
    assert path.read_bytes().endswith(b'"mess\n')


def test_a_last_line_that_only_lacks_its_end_is_whole(home: Any, said: Any) -> None:
    session, lines = exchange(home, 2)
    path = Path(session.path)
    path.write_bytes(b"".join(lines)[:-1])
    again = home.open(resume=session.session_id)
    assert said(again) == ["p0", "a1"] and not again.problems


@pytest.mark.parametrize("damage", [b"\0" * 400, b"nonsense", b'{"type":"user","message":{"role":"us', b"\xff\xfe\x00", b"[1, 2]",
                                    b"7", b"[" * 5000])
def test_a_damaged_line_in_the_middle_is_named_and_the_rest_is_kept(home: Any, said: Any, damage: bytes) -> None:
    session, lines = exchange(home, 50)
    lines[19] = damage + b"\n"
    Path(session.path).write_bytes(b"".join(lines))
    again = home.open(resume=session.session_id)
    kept = [f"{'pa'[n % 2]}{n}" for n in range(50) if n != 19]
    assert said(again) == kept, "what stands before the damage is kept as well"
    (problem,) = again.problems
    assert session.path in problem and "line 20" in problem
    assert Path(session.path).read_bytes() == b"".join(lines)


def test_many_damaged_lines_are_counted(home: Any) -> None:
    session, lines = exchange(home, 50)
    Path(session.path).write_bytes(b"".join(b"x\n" if n % 2 else line for n, line in enumerate(lines)))
    problems = home.open(resume=session.session_id).problems
    assert len(problems) == 6 and "20 more" in problems[-1]


def test_damage_before_a_summary_does_not_bring_the_past_back() -> None:
    lines = [json.dumps(e).encode() for e in (
        entry("a", None), entry("b", "a"), entry("k", None, "system"), entry("s", "k", isCompactSummary=True), entry("c", "s"))]
    lines[2] = b"\0" * 10
    graph = Graph(parse(Path("x"), b"\n".join(lines)))
    assert [line.uuid for line in graph.active().lines] == ["s", "c"]


def test_an_entry_glued_to_a_torn_one_is_saved(home: Any) -> None:
    session, lines = exchange(home, 3)
    title = b'{"type":"custom-title","customTitle":"Renamed","sessionId":"%b"}\n' % session.session_id.encode()
    Path(session.path).write_bytes(b"".join(lines[:2]) + lines[2][:-40] + title)
    again = home.open(resume=session.session_id)
    assert again.restored.title == "Renamed" and len(again.problems) == 1


def test_a_cut_write_that_was_repeated_is_no_damage(home: Any, said: Any) -> None:
    session, lines = exchange(home, 3)
    Path(session.path).write_bytes(lines[0] + lines[1] + lines[2][:30] + b"\n" + lines[2])
    again = home.open(resume=session.session_id)
    assert said(again) == ["p0", "a1", "p2"] and not again.problems


@pytest.mark.parametrize("raw", [b'{"a":"\\ud800"}', b'{"a":"\xff"}', b'{"a":NaN}', b'{"a":1e999}', b' {"a":1} \r'])
def test_unusual_json_is_read(raw: bytes) -> None:
    assert decode(raw) is not None


def test_nothing_is_salvaged_from_inside_an_entry() -> None:
    assert salvage(b'{"type":"user","message":{"content":[{"type":"tag","sessionId":"x"}]}') is None
    assert salvage(b'{"' * 100_000) is None


@pytest.mark.parametrize("message", [5, None, "text", [], {}, {"content": 5}, {"content": None}])
@pytest.mark.parametrize("parent", [None, "last", "nobody", 7])
def test_a_line_that_is_json_and_no_message_is_named_and_hides_nothing(home: Any, said: Any, message: Any, parent: Any) -> None:
    last = home.answer("1")
    session = home.begin(home.prompt("one"), last)
    entry = {"type": "user", "uuid": "22222222-2222-4222-8222-222222222222", "message": message,
             "parentUuid": last.uuid if parent == "last" else parent}
    with Path(session.path).open("a") as file:
        file.write(json.dumps(entry) + "\n")
    again = home.open(resume=session.session_id)
    number = len(Path(session.path).read_bytes().splitlines())
    assert said(again) == ["one", "1"] and f"line {number}: the user entry holds no message" in again.problems[0]
    again.append([home.prompt("two")], cwd=str(home.cwd))
    again.close()
    assert said(home.open(resume=session.session_id)) == ["one", "1", "two"]
