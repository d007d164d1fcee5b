"""From lines to rows: pure, over tables of what may stand in a transcript and in a record."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from kernel_inspector import views
from kernel_inspector.details import details
from kernel_inspector.lane import answer_of
from kernel_inspector.log import record_of
from kernel_inspector.model import SessionModel, encoded
from kernel_inspector.search import search

from kernel import ModelInfo, Prices

Entry = dict[str, Any]
ID = "3f0c1f7e-0000-4000-8000-000000000000"


def user(content: Any, **more: Any) -> Entry:
    return {"type": "user", "message": {"role": "user", "content": content}, **more}


def answer(*blocks: Entry, id: str = "", **usage: int) -> Entry:
    return {
        "type": "assistant",
        "message": {"role": "assistant", "id": id or f"msg_{blocks}", "model": "m", "content": list(blocks), "usage": usage},
    }


def text(value: str) -> Entry:
    return {"type": "text", "text": value}


def call(id: str, name: str = "Bash", **input: Any) -> Entry:
    return {"type": "tool_use", "id": id, "name": name, "input": input}


def result(id: str, content: Any = "ok", **more: Any) -> Entry:
    return user([{"type": "tool_result", "tool_use_id": id, "content": content, **more}])


def stamped(entries: list[Entry]) -> list[Entry]:
    """The entries as a chain, a second apart."""
    found: list[Entry] = []
    for n, entry in enumerate(entries):
        if "type" in entry and entry["type"] not in ("custom-title", "permission-mode"):
            entry = {
                "uuid": f"u{n}",
                "parentUuid": f"u{n - 1}" if n else None,
                "timestamp": f"2026-01-02T03:{n // 60:02}:{n % 60:02}.000Z",
                **entry,
            }
        found.append(entry)
    return found


class Files:
    """A session's files in a folder of its own."""

    def __init__(self, root: Path) -> None:
        self.path = root / "config" / "projects" / "p" / f"{ID}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, *entries: Entry, mode: str = "w") -> None:
        with self.path.open(mode) as file:
            file.write("".join(json.dumps(e) + "\n" for e in entries))

    def record(self, *lines: Entry, mode: str = "w") -> None:
        record_of(self.path).parent.mkdir(exist_ok=True)
        with record_of(self.path).open(mode) as file:
            file.write("".join(json.dumps(e) + "\n" for e in lines))

    def model(self, **more: Any) -> SessionModel:
        made = SessionModel(self.path, **more)
        made.poll()
        return made


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def kinds(model: SessionModel) -> list[str]:
    return [row.kind for row in model.main.rows]


def at(second: float) -> int:
    """Milliseconds of a second of ``stamped``."""
    return 1767322800000 + round(second * 1000)


CHAIN = [user("go"), answer(text("I look"), call("c1", command="ls -l")), result("c1", "a.py"), answer(text("done"))]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (user("go"), ("turn", "go", "")),
        (user([text("go"), {"type": "image", "source": {}}]), ("turn", "go [image]", "")),
        (user("<system-reminder>x</system-reminder>", isMeta=True), ("context", "x", "")),
        (user("<command-name>/review</command-name><command-args>1</command-args>"), ("turn", "/review 1", "")),
        (user("summed up", isCompactSummary=True), ("summary", "summed up", "")),
        (user([text("[Request interrupted by user]")]), ("note", "[Request interrupted by user]", "error")),
        (answer(text("hello")), ("text", "hello", "")),
        (answer({"type": "thinking", "thinking": "hm"}), ("thinking", "hm", "")),
        (answer(call("c", file_path="/a/b.py")), ("tool", "/a/b.py", "running")),
        (answer(call("c", "Grep", pattern="x", path="src")), ("tool", "x src", "running")),
        (answer(call("c", "Odd", one=1, two=[2])), ("tool", "one: 1, two: [2]", "running")),
        (answer({"type": "server_tool_use", "id": "c", "name": "web_search", "input": {"query": "q"}}), ("tool", "q", "ok")),
        ({**answer(text("overloaded")), "isApiErrorMessage": True}, ("note", "overloaded", "error")),
        (
            {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto", "preTokens": 9000}},
            ("compaction", "auto, 9,000 tokens before", ""),
        ),
        ({"type": "system", "subtype": "informational", "content": "note"}, ("note", "note", "")),
        (result("nobody", "lost"), ("note", "lost", "")),
    ],
)
def test_an_entry_becomes_a_row(files: Files, entry: Entry, expected: tuple[str, str, str]) -> None:
    files.write(*stamped([entry]))
    row = files.model().main.rows[-1]
    assert (row.kind, row.text, row.state) == expected


def test_a_call_its_result_and_its_record_are_one_row(files: Files) -> None:
    files.write(*stamped(CHAIN))
    files.record(
        {
            "kind": "hooks",
            "at": at(1.1),
            "event": "PreToolUse",
            "call": "c1",
            "ms": 30.0,
            "by": [{"plugin": "guard", "ms": 30.0, "says": {"permissionDecision": "allow"}}, {"plugin": "other", "ms": 0.0}],
        },
        {"kind": "approval", "at": at(1.5), "call": "c1", "ms": 300.0, "behavior": "allow"},
        {"kind": "decision", "at": at(1.5), "call": "c1", "behavior": "allow", "reason": "promptTool", "ms": 310.0},
        {"kind": "tool", "at": at(1.9), "call": "c1", "status": "success", "ms": 250.0},
    )
    model = files.model()
    assert kinds(model) == ["turn", "text", "tool", "text"]
    row = model.main.rows[2]
    assert (row.title, row.text, row.state, row.by, row.hooks, row.ms) == ("Bash", "ls -l", "ok", "person", 2, 250.0)
    assert model.main.ms == {"model": 2000.0, "tools": 250.0, "hooks": 30.0, "waiting": 300.0}
    shown = details(model, model.main, 2)
    assert [s["title"] for s in shown["sections"]] == [
        "Input",
        "Question",
        "Decision",
        "Run",
        "Hooks",
        "Result",
        "Request 1",
        "What it consisted of, estimated",
    ]


def test_without_a_record_times_are_estimated_and_nobody_is_said_to_have_decided(files: Files) -> None:
    files.write(*stamped(CHAIN))
    model = files.model()
    row = model.main.rows[2]
    assert (row.ms, row.by, row.state) == (1000, "", "ok")
    seen = views.summary(model)
    assert seen["totals"]["estimated"] and not seen["recorded"] and seen["totals"]["usd"] is None


def test_what_requests_cost_is_worked_out_where_nothing_recorded_it(files: Files) -> None:
    files.write(*stamped([user("go"), answer(text("x"), input_tokens=1_000_000, output_tokens=100_000)]))
    info = ModelInfo(id="m", context_window=1234, prices=Prices(3.0, 15.0, 3.75, 0.3))
    seen = views.summary(files.model(facts=lambda name: info if name == "m" else None))
    assert seen["totals"]["usd"] == pytest.approx(4.5) and seen["window"] == 1234


def test_the_record_says_what_turns_cost_also_over_two_processes(files: Files) -> None:
    files.write(*stamped([user("one"), answer(text("x")), user("two"), answer(text("y")), user("three"), answer(text("z"))]))
    files.record(
        {"kind": "session", "at": at(0)},
        {"kind": "result", "at": at(1), "ms": 1000.0, "usd": 0.5},
        {"kind": "result", "at": at(3), "ms": 1000.0, "usd": 0.75},
        {"kind": "session", "at": at(4)},
        {"kind": "result", "at": at(5), "ms": 1000.0, "usd": 0.1},
    )
    model = files.model()
    assert [row.usd for row in model.main.rows if row.kind == "turn"] == pytest.approx([0.5, 0.25, 0.1])
    assert views.summary(model)["totals"]["usd"] == pytest.approx(0.85)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, "unknown"),
        ({"parts": "b"}, "tools: Grep"),
        ({"parts": "c"}, "system: git"),
        ({"parts": "d"}, "tools: order"),
        ({"same": 1}, "history from message 2"),
        ({"choice": "any"}, "tool choice"),
    ],
)
def test_what_broke_the_cache(files: Files, change: dict[str, Any], why: str) -> None:
    def parts(id: str, tools: list[tuple[str, str]], git: str = "g") -> Entry:
        return {
            "kind": "parts",
            "at": at(0),
            "id": id,
            "system": [{"name": "git", "chars": 40, "hash": git}],
            "tools": [{"name": n, "chars": 40, "hash": h} for n, h in tools],
        }

    tools = [("Bash", "1"), ("Read", "2")]
    used = {"cache_creation_input_tokens": 5000, "input_tokens": 10}
    files.write(*stamped([user("a"), answer(text("x"), id="m1", **used), user("b"), answer(text("y"), id="m2", **used)]))
    files.record(
        parts("a", tools),
        parts("b", [*tools, ("Grep", "3")]),
        parts("c", tools, "h"),
        parts("d", tools[::-1]),
        {"kind": "request", "at": at(1), "message": "m1", "parts": "a", "messages": 1, "same": 0, "ms": 5, "sizes": {"user": 1}},
        {
            "kind": "request",
            "at": at(3),
            "message": "m2",
            "parts": "a",
            "messages": 3,
            "same": 1,
            "ms": 5,
            "sizes": {"user": 9},
            **({"same": 0} if "same" in change else {}),
            **{k: v for k, v in change.items() if k != "same"},
        },
    )
    if "same" in change:
        why = "history from message 1"
    first, second = files.model().main.requests
    assert (first.broke, second.broke, second.lost) == ("", why, 5000)


def test_tokens_are_shared_out_by_characters(files: Files) -> None:
    files.write(*stamped([user("a"), answer(text("x"), id="m1", input_tokens=100, cache_read_input_tokens=900)]))
    files.record(
        {
            "kind": "parts",
            "at": at(0),
            "id": "a",
            "system": [{"name": "s", "chars": 200}],
            "tools": [{"name": "t", "chars": 100}],
        },
        {"kind": "request", "at": at(1), "message": "m1", "parts": "a", "sizes": {"user": 100, "results": 100}, "ms": 1},
    )
    (request,) = files.model().main.requests
    assert request.parts == {"system": 400, "tools": 200, "user": 200, "results": 200} and not request.estimated


def test_context_and_hooks_before_a_prompt_belong_to_its_turn(files: Files) -> None:
    files.write(
        *stamped(
            [
                user("context", isMeta=True),
                user("go"),
                answer(text("x")),
                user("more", isMeta=True),
                user("again"),
                answer(text("y")),
            ]
        )
    )
    files.record(
        {
            "kind": "hooks",
            "at": at(0),
            "event": "UserPromptSubmit",
            "ms": 5.0,
            "by": [{"plugin": "p", "says": {"additionalContext": 9}}],
        }
    )
    model = files.model()
    assert kinds(model) == ["turn", "context", "hooks", "text", "turn", "context", "text"]
    assert [row.turn for row in model.main.rows] == [0, 0, 0, 0, 1, 1, 1]


def test_a_branch_that_was_left_is_marked(files: Files) -> None:
    entries = stamped([user("one"), answer(text("old")), user("two"), answer(text("new"))])
    entries[2]["parentUuid"] = "u0"
    files.write(*entries)
    assert [(row.text, row.aside) for row in files.model().main.rows] == [
        ("one", False),
        ("old", True),
        ("two", False),
        ("new", False),
    ]


def test_compaction_leaves_what_was_before_in_the_conversation(files: Files) -> None:
    entries = stamped(
        [
            user("one"),
            answer(text("x")),
            {"type": "system", "subtype": "compact_boundary", "logicalParentUuid": "u1"},
            user("sum", isCompactSummary=True),
            user("two"),
            answer(text("y")),
        ]
    )
    entries[2]["parentUuid"] = None
    files.write(*entries)
    assert not any(row.aside for row in files.model().main.rows)


def test_subagents_are_lanes_and_their_calls_lead_there(files: Files) -> None:
    files.write(*stamped([user("go"), answer(call("c1", "Agent", description="look", prompt="p")), result("c1")]))
    folder = files.path.with_suffix("") / "subagents" / "deeper"
    folder.mkdir(parents=True)
    (folder / "agent-a1.jsonl").write_text(
        "".join(json.dumps({**e, "isSidechain": True}) + "\n" for e in stamped([user("task"), answer(text("x"))]))
    )
    (folder / "agent-a1.meta.json").write_text(json.dumps({"agentType": "Explore", "toolUseId": "c1", "description": "look"}))
    (folder / "agent-a2.jsonl").write_text("not json\n")
    (folder / "agent-a2.meta.json").write_text("[")
    model = files.model()
    assert model.main.rows[1].lane == "a1" and model.lanes["a1"].kind == "Explore"
    assert [(r.title, r.text) for r in model.lanes["a1"].rows] == [("Task", "task"), ("Answer", "x")]
    assert {s["lane"] for s in views.spans(model, model.main, 0)["spans"]} == {"", "a1"}
    assert model.lanes["a2"].rows == [] and views.summary(model)["damaged"] == 1


def test_growth_in_small_pieces_comes_to_the_same_as_reading_at_once(files: Files, tmp_path: Path) -> None:
    lines = "".join(json.dumps(e, ensure_ascii=False) + "\n" for e in stamped([*CHAIN, user("größer 😀"), *CHAIN[1:]])).encode()
    other = Files(tmp_path / "other")
    model = SessionModel(files.path)
    seed = int(os.environ.get("SEED", random.randrange(10**6)))
    print(f"SEED={seed}")
    place, choose = 0, random.Random(seed)
    while place < len(lines):
        step = choose.randrange(1, 200)
        with files.path.open("ab") as file:
            file.write(lines[place : place + step])
        place += step
        model.poll()
    other.path.write_bytes(lines)
    assert model.main.rows == other.model().main.rows
    assert model.main.rows[4].text == "größer 😀"


def test_a_record_that_comes_behind_its_answer_still_counts(files: Files) -> None:
    files.write(*stamped([user("a"), answer(text("x"), id="m1", input_tokens=10)]))
    model = files.model()
    assert model.main.requests[0].estimated
    files.record({"kind": "request", "at": at(1), "message": "m1", "ms": 123.0, "ttft": 7.0, "sizes": {"user": 4}, "usd": 0.25})
    assert model.poll()
    request = model.main.requests[0]
    assert (request.estimated, request.ms, request.ttft, request.usd) == (False, 123.0, 7.0, 0.25)
    assert model.main.ms["model"] == 123.0


def test_a_file_that_is_replaced_cut_or_deleted(files: Files) -> None:
    files.write(*stamped(CHAIN))
    model = files.model()
    assert not model.poll(), "nothing new"
    files.path.write_text(json.dumps(stamped([user("short")])[0]) + "\n")
    assert model.poll() and [r.text for r in model.main.rows] == ["short"]
    replacement = files.path.with_suffix(".new")
    replacement.write_text("".join(json.dumps(e) + "\n" for e in stamped([*CHAIN, *CHAIN])))
    replacement.rename(files.path)
    assert model.poll() and len(model.main.rows) == 8
    files.path.unlink()
    assert model.poll() and model.gone and len(model.main.rows) == 8
    assert details(model, model.main, 0)["sections"][0]["text"] == "go", "what was read is still open"
    assert not model.poll()
    files.write(*stamped(CHAIN))
    assert model.poll() and not model.gone and len(model.main.rows) == 4


def test_search_finds_what_is_not_in_the_preview(files: Files) -> None:
    files.write(
        *stamped(
            [
                user("go " + "x " * 400 + "Needle here"),
                answer(call("c1", command="ls", deep={"path": ["/tmp/Größe"]})),
                result("c1", [{"type": "text", "text": 'say "quoted\\n"\nnext'}]),
                answer(text("nothing")),
            ]
        )
    )
    model = files.model()

    def found(query: str) -> list[int]:
        return [hit["row"] for hit in search(model, query)["hits"]]

    assert found("needle") == [0] and found("größe") == [1] and found('"quoted\\n"') == [1]
    assert found("go") == [0] and found("tool_result") == [] and found("u0") == [] and found("  ") == []
    (hit,) = search(model, "needle")["hits"]
    assert hit["text"][hit["from"] : hit["to"]] == "Needle"


def test_search_chooses_by_state_and_by_who_decided(files: Files) -> None:
    files.write(
        *stamped(
            [
                user("go"),
                answer(call("c1", command="make"), call("c2", "Read", file_path="a"), call("c3", command="curl")),
                result("c1", is_error=True),
                result("c2"),
                result("c3", is_error=True),
            ]
        )
    )
    files.record({"kind": "decision", "at": at(1), "call": "c3", "behavior": "deny", "reason": "rule", "ms": 1})
    model = files.model()

    def found(query: str) -> list[int]:
        return [hit["row"] for hit in search(model, query)["hits"]]

    assert found("is:failed") == [1] and found("is:refused") == [3] and found("by:rule") == [3] and found("tool:read") == [2]
    assert found("tool:bash") == [1, 3] and found("tool:bash curl") == [3]
    assert found("is:turn") == [0] and found("is:nonsense") == []
    assert model.main.rows[0].errors == 1


def test_many_requests_share_columns_and_no_break_is_lost(files: Files) -> None:
    entries = [user("go")]
    for n in range(1000):
        entries.append(
            answer(text("x"), id=f"m{n}", cache_read_input_tokens=0 if n == 777 else 5000)
        )
        entries.append(user("on", isMeta=True))
    files.write(*stamped(entries))
    model = files.model()
    got = views.requests(model.main)
    assert got["total"] == 1000 and len(got["columns"]) <= views.MOST_COLUMNS
    (broken,) = [c for c in got["columns"] if c["broke"]]
    assert broken["number"] == 777 and sum(c["many"] for c in got["columns"]) == 1000


@pytest.mark.parametrize("kind", [[], {}, ["user"]])
def test_a_type_that_is_none_is_a_damaged_line(files: Files, kind: Any) -> None:
    files.write(user("hi"), {"type": kind}, answer(text("yes")))
    model = files.model()
    assert kinds(model) == ["turn", "text"] and views.summary(model)["damaged"] == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "id",
                    "name",
                    "input",
                    "text",
                    "content",
                    "tool_use_id",
                    "usage",
                    "message",
                    "model",
                    "says",
                    "plugin",
                    "error",
                    "input_tokens",
                    "ms",
                    "at",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
NAMES = [
    "type",
    "uuid",
    "parentUuid",
    "timestamp",
    "message",
    "isMeta",
    "isCompactSummary",
    "subtype",
    "compactMetadata",
    "content",
    "customTitle",
    "logicalParentUuid",
    "cwd",
    "gitBranch",
    "toolUseResult",
]
ENTRIES = st.dictionaries(st.sampled_from(NAMES), JSON, max_size=6).flatmap(
    lambda e: st.fixed_dictionaries(
        {"type": st.sampled_from(["user", "assistant", "system", "progress", "custom-title", "summary", "odd", None, 1])}
    ).map(lambda t: {**e, **t})
)
RECORDS = st.dictionaries(
    st.sampled_from(
        [
            "at",
            "ms",
            "call",
            "by",
            "event",
            "agent",
            "message",
            "sizes",
            "parts",
            "id",
            "error",
            "usd",
            "system",
            "tools",
            "same",
            "messages",
            "behavior",
            "reason",
            "rule",
            "subtype",
            "failed",
            "to",
        ]
    ),
    JSON,
    max_size=6,
).flatmap(
    lambda e: st.sampled_from(
        ["session", "parts", "request", "hooks", "decision", "approval", "tool", "result", "mode", "cleared", "odd"]
    ).map(lambda kind: {**e, "kind": kind})
)


@settings(max_examples=int(os.environ.get("KERNEL_EXAMPLES", "60")), deadline=None)
@given(st.lists(ENTRIES, max_size=8), st.lists(RECORDS, max_size=8), st.binary(max_size=40))
def test_whatever_stands_in_the_files_there_is_a_page(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Entry], records: list[Entry], noise: bytes
) -> None:
    files = Files(tmp_path_factory.mktemp("fuzz"))
    files.write(*entries)
    files.record(*records)
    with files.path.open("ab") as file:
        file.write(noise)
    model = files.model()
    encoded(views.summary(model))
    for lane in model.lanes.values():
        assert len(lane.rows) == len(lane.behind)
        encoded(
            [
                views.rows(lane, 0, 500),
                views.turns(lane),
                views.requests(lane),
                *(views.spans(model, lane, turn) for turn in range(len(lane.turns) + 1)),
            ]
        )
        for row in range(len(lane.rows)):
            encoded(details(model, lane, row))
    search(model, "a")
    search(model, "is:failed x")
    model.close()


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ({"says": {"permissionDecision": "deny", "permissionDecisionReason": "not here"}}, "deny: not here"),
        (
            {"says": {"permissionDecision": "allow", "permissionDecisionReason": 12}},
            "allow; permissionDecisionReason (12 characters)",
        ),
        ({"says": {"additionalContext": 1200, "continue": False}}, "additionalContext (1,200 characters), continue False"),
        ({"says": {"decision": "block", "reason": "tests fail"}}, "block: tests fail"),
        ({"error": "TimeoutError: no answer within 660 s"}, "failed: TimeoutError: no answer within 660 s"),
        ({}, "silent"),
        ({"says": [1]}, "silent"),
    ],
)
def test_what_a_hook_answered_is_said_in_words(by: dict[str, Any], words: str) -> None:
    assert answer_of(by) == words


def test_a_call_that_nobody_answered_is_lost_when_the_next_turn_begins(files: Files) -> None:
    files.write(*stamped([user("go"), answer(call("c1"), call("c2")), result("c2"), user("on"), answer(call("c3"))]))
    assert [row.state for row in files.model().main.rows if row.kind == "tool"] == ["lost", "ok", "running"]
