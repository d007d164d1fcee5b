"""Histories that the Messages API accepts: kept legal by ``History``, made legal by ``normalise`` (loop contract, section 5)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from kernel.errors import HistoryError
from kernel.messages import INTERRUPTED, Block, History, blocks_of, encode, normalise, reminder, scrub, text_block, text_of

Messages = list[tuple[Any, Any]]


def said(text: str = "hi") -> Block:
    return {"type": "text", "text": text}


def use(id: Any, **input: Any) -> Block:
    return {"type": "tool_use", "id": id, "name": "Read", "input": input}


def result(id: Any, content: Any = "out") -> Block:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def thought(text: str = "hm") -> Block:
    return {"type": "thinking", "thinking": text, "signature": "sig"}


def server(id: str) -> Block:
    return {"type": "server_tool_use", "id": id, "name": "web_search", "input": {}}


def found(id: str) -> Block:
    return {"type": "web_search_tool_result", "tool_use_id": id, "content": []}


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [s for k, v in value.items() for s in (k, *strings(v))]
    return [s for v in value for s in strings(v)] if isinstance(value, list) else []


def fault(messages: list[dict[str, Any]]) -> str | None:
    """Why the API would refuse these messages: the rows of 5.2 that a history alone can break. Strict on purpose."""
    if not messages or messages[0]["role"] != "user":
        return "row 12: the first message is not the user's"
    used: set[str] = set()
    owed: list[str] = []
    served: list[str] = []
    for number, message in enumerate(messages):
        blocks = message["content"]
        if not isinstance(blocks, list) or not blocks:
            return f"row 10: message {number} is empty"
        for block in blocks:
            if block.get("type") == "text" and not block["text"].strip():
                return f"rows 9, 11: blank text in message {number}"
        answered = [b["tool_use_id"] for b in blocks if b.get("type") == "tool_result"]
        if message["role"] == "user":
            if any(b["type"] in ("tool_use", "server_tool_use") or b["type"].endswith("_tool_result") for b in blocks
                   if isinstance(b.get("type"), str)):
                return f"rows 2, 8: a block of the assistant in message {number}"
            if len(answered) != len(set(answered)):
                return f"row 5: two results for one call in message {number}"
            if set(answered) - set(owed):
                return f"row 2: a result without its call in message {number}"
            if set(owed) - set(answered):
                return f"row 1: a call without its result in message {number}"
            if any(b.get("type") != "tool_result" for b in blocks[: len(answered)]):
                return f"row 3: something before the results in message {number}"
            if answered != owed:
                return f"5.1 rule 3: results out of order in message {number}"
            owed = []
        else:
            if owed or answered:
                return f"row 1: the calls before message {number} are not answered"
            owed = [b["id"] for b in blocks if b.get("type") == "tool_use"]
            if len(owed) != len(set(owed)) or used & set(owed):
                return f"row 4: a call id twice in message {number}"
            used |= set(owed)
            for block in blocks:
                if block.get("type") in ("server_tool_use", "mcp_tool_use"):
                    served.append(block["id"])
                elif block.get("type", "").endswith("_tool_result"):
                    if block["tool_use_id"] not in served:
                        return f"row 8: a server result without its tool in message {number}"
                    served.remove(block["tool_use_id"])
            if served and not owed and number < len(messages) - 1:
                return f"row 8: a server tool without its result in message {number}"
        if number and messages[number - 1]["role"] == message["role"]:
            return f"5.3 rule 6: messages {number - 1} and {number} have one role"
    if owed:
        return "row 1: the last calls are not answered"
    if any(0xD800 <= ord(c) < 0xE000 for s in strings(messages) for c in s):
        return "row 19: a lone surrogate"
    return None


def wire(messages: Messages) -> list[dict[str, Any]]:
    return [{"role": role, "content": content} for role, content in messages]


def mended(messages: Messages, **options: Any) -> Messages:
    """The normalised history, after checking that it is legal, accepted by ``History`` and left alone a second time."""
    out, _ = normalise(messages, **options)
    if out:
        assert fault(wire(out)) is None
        assert History(out).wire() == wire(out)
    again, changes = normalise(out, **options)
    assert (again, changes) == (out, [])
    return out


# -- mending --------------------------------------------------------------------------------------------------------------
U: Any = "user"
A: Any = "assistant"
START = (U, [said("go")])

BROKEN: dict[str, Messages] = {
    "row 1, the history ends with a call": [START, (A, [use("a")])],
    "row 1, plain text follows the call": [START, (A, [use("a")]), (U, [said("no answer")])],
    "row 1, one of two results is missing": [START, (A, [use("a"), use("b")]), (U, [result("b")])],
    "row 1, another message between the two": [START, (A, [use("a")]), (U, [said("x")]), (A, [said("y")]), (U, [result("a")])],
    "row 1, the answer is an assistant message": [START, (A, [use("a")]), (A, [said("on")]), (U, [said("x")])],
    "row 2, a result of no call": [START, (A, [said("ok")]), (U, [result("ghost"), said("x")])],
    "row 2, nothing but a result of no call": [START, (A, [said("ok")]), (U, [result("ghost")])],
    "row 2, a result in the first message": [(U, [result("ghost"), said("go")])],
    "row 2, a result of an earlier call": [START, (A, [use("a")]), (U, [result("a")]), (A, [use("b")]), (U, [result("a")])],
    "row 3, text before the result": [START, (A, [use("a")]), (U, [said("first"), result("a")])],
    "row 3, text between the results": [START, (A, [use("a"), use("b")]), (U, [result("a"), said("mid"), result("b")])],
    "order, results of a batch reversed": [START, (A, [use("a"), use("b")]), (U, [result("b"), result("a")])],
    "row 4, one id twice in a message": [START, (A, [use("a"), use("a", x=1)]), (U, [result("a"), result("a")])],
    "row 4, one id in two turns": [START, (A, [use("a")]), (U, [result("a")]), (A, [use("a")]), (U, [result("a")])],
    "row 4, a call without an id": [START, (A, [use(None), use("b")]), (U, [result("b")])],
    "row 5, two results for one call": [START, (A, [use("a")]), (U, [result("a", "kept"), result("a", "dropped")])],
    "row 8, a server tool without its result": [START, (A, [server("s"), said("x")]), (U, [said("y")])],
    "row 8, a server result without its tool": [START, (A, [found("s"), said("x")]), (U, [said("y")])],
    "row 8, a server result in the user's message": [START, (A, [server("s")]), (U, [found("s"), said("y")])],
    "row 9, empty text": [START, (A, [said(""), said("ok")])],
    "row 10, an empty message": [START, (A, []), (U, [said("still there?")])],
    "row 10, a message that becomes empty": [START, (A, [said(" ")]), (U, [said("still there?")])],
    "row 11, white space only": [(U, [said("go"), said(" \n\t")])],
    "row 12, it begins with an assistant message": [(A, [said("hello")]), START],
    "row 12, and with its results": [(A, [use("a")]), (U, [result("a")]), (A, [said("ok")]), (U, [said("go")])],
    "row 19, half an emoji": [(U, [said("cut \ud83d")]), (A, [use("a", **{"k\udc00": "\ud800"})]), (U, [result("a", "\udfff")])],
    "two messages of the user in a row": [START, (U, [said("more")]), (A, [said("ok")])],
    "two assistant messages in a row": [START, (A, [said("one")]), (A, [use("a")]), (U, [result("a")])],
    "results of one batch in two messages": [START, (A, [use("a"), use("b")]), (U, [result("a")]), (U, [result("b")])],
    "content that is a string": [(U, "go"), (A, "ok"), (U, "  ")],
    "blocks that are no objects": [(U, ["go", 1, None, said("go")])],
    "calls with strange ids": [START, (A, [use(7), use(["x"]), use("b")]), (U, [result(["x"]), result("b"), result({"y": 1})])],
}


@pytest.mark.parametrize("name", BROKEN)
def test_every_broken_history_becomes_one_that_the_api_accepts(name: str) -> None:
    broken = BROKEN[name]
    before = repr(broken)
    assert mended(broken)
    assert normalise(broken)[1] or name.startswith(("two ", "results of one batch", "content", "row 19", "row 10, an empty"))
    assert repr(broken) == before, "the given messages were changed"


def test_the_checker_of_these_tests_refuses_the_broken_histories() -> None:
    """Otherwise the test above would prove nothing."""
    for name, broken in BROKEN.items():
        if not name.startswith(("content", "blocks", "calls with")):
            assert fault(wire(broken)) is not None, name


def test_an_unanswered_call_is_answered_with_what_is_known() -> None:
    out = mended([START, (A, [said("x"), use("a"), use("b")]), (U, [said("and?"), result("b", "kept")])])
    assert out[2] == (U, [{**result("a", INTERRUPTED), "is_error": True}, result("b", "kept"), said("and?")])


def test_the_first_of_two_results_and_of_two_calls_is_kept() -> None:
    out = mended([START, (A, [use("a", n=1), use("a", n=2)]), (U, [result("a", "one"), result("a", "two")])])
    assert out[1:] == [(A, [use("a", n=1)]), (U, [result("a", "one")])]


def test_half_a_character_is_replaced_and_whole_ones_are_kept() -> None:
    out = mended([(U, [said("\ud83d\ude00 x \ud83d")]), (A, [said("😀")])])
    assert out == [(U, [said("😀 x �")]), (A, [said("😀")])]


def test_a_server_tool_may_wait_for_its_result_at_the_very_end() -> None:
    """A paused answer is sent back as it is (section 3, pause_turn)."""
    paused: Messages = [START, (A, [said("searching"), server("s")])]
    assert mended(paused) == paused


def test_thinking_stays_for_the_same_model_and_goes_for_another() -> None:
    history: Messages = [START, (A, [thought(), {"type": "redacted_thinking", "data": "x"}, use("a")]), (U, [result("a")]),
                         (A, [thought("only")])]
    assert mended(history) == history
    assert mended(history, keep_thinking=False) == [START, (A, [use("a")]), (U, [result("a")])]


def test_unknown_blocks_are_kept_word_for_word() -> None:
    strange = {"type": "compaction", "content": None, "x": [1, {"y": "z"}]}
    history: Messages = [(U, [said(), strange]), (A, [strange, said()])]
    assert mended(history) == history


IDS = st.sampled_from(["a", "b", "c", "d"])
BLOCKS = st.one_of(
    st.builds(said, st.sampled_from(["hi", "", " ", "\ud800", "x\n"])), st.builds(use, IDS), st.builds(result, IDS),
    st.builds(thought), st.builds(server, st.sampled_from("st")), st.builds(found, st.sampled_from("st")),
    st.just({"type": "image", "source": {}}))
ANY = st.lists(st.tuples(st.sampled_from([U, A]), st.one_of(st.lists(BLOCKS, max_size=4), st.sampled_from(["go", "", " "]))),
               max_size=8)


def test_two_server_calls_of_one_id_are_one() -> None:
    messages: Messages = [("user", [said("hi")]), ("assistant", [server("s"), server("s"), found("s")]), ("user", [said("hi")])]
    assert mended(messages)[1] == ("assistant", [server("s"), found("s")])


@example([(U, [said("hi")]), (A, [use("a"), server("s")]), (U, [said("hi")]), (A, [said("hi")]), (U, [said("hi")])])
@given(ANY)
def test_any_history_at_all_becomes_legal_and_stays_as_it_is_then(messages: Messages) -> None:
    before = repr(messages)
    mended(messages)
    assert repr(messages) == before


@st.composite
def legal(draw: st.DrawFn) -> Messages:
    """A history as the loop makes it: prompts, answers with or without calls, results in order with text behind them."""
    messages: Messages = []
    number = 0
    for _ in range(draw(st.integers(1, 5))):
        messages.append((U, [said("prompt")]))
        for _ in range(draw(st.integers(0, 3))):
            calls = [use(f"id{number + n}") for n in range(draw(st.integers(1, 3)))]
            number += len(calls)
            front = draw(st.sampled_from([[], [thought()], [said("let me see")], [thought(), said("x")]]))
            messages.append((A, [*front, *calls]))
            behind = draw(st.sampled_from([[], [reminder("context")], [said("more")]]))
            messages.append((U, [*(result(c["id"]) for c in calls), *behind]))
        messages.append((A, [said("done")]))
    return messages


@given(legal())
def test_a_legal_history_comes_back_unchanged(messages: Messages) -> None:
    assert fault(wire(messages)) is None
    assert normalise(messages) == (messages, [])


@given(legal(), st.data())
def test_a_history_cut_anywhere_is_mended(messages: Messages, data: st.DataObject) -> None:
    """A crash can end the record behind any message."""
    cut = messages[: data.draw(st.integers(1, len(messages)))]
    out = mended(cut)
    assert out[: len(cut)] == cut


# -- the history that refuses -----------------------------------------------------------------------------------------------
REFUSED: dict[str, Messages] = {
    "an assistant message first": [(A, [said()])],
    "text while a call is open": [START, (A, [use("a")]), (U, [said("x")])],
    "half of the results": [START, (A, [use("a"), use("b")]), (U, [result("a")])],
    "results out of order": [START, (A, [use("a"), use("b")]), (U, [result("b"), result("a")])],
    "a result too many": [START, (A, [use("a")]), (U, [result("a"), result("a")])],
    "a result of no call": [START, (A, [said()]), (U, [result("a")])],
    "text before the results": [START, (A, [use("a")]), (U, [said("x"), result("a")])],
    "an assistant message while a call is open": [START, (A, [use("a")]), (A, [said()])],
    "one id twice in a message": [START, (A, [use("a"), use("a")])],
    "one id in two turns": [START, (A, [use("a")]), (U, [result("a")]), (A, [use("a")])],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_api_would_refuse_does_not_enter(name: str) -> None:
    *before, (role, content) = REFUSED[name]
    history = History(before)
    kept, open_calls = history.wire(), history.open_calls
    with pytest.raises(HistoryError):
        history.append(role, content)
    assert (history.wire(), history.open_calls) == (kept, open_calls)
    assert json.loads(history.encode()) == kept


def test_blank_text_is_left_out_and_a_blank_message_is_none() -> None:
    history = History([(U, [said("  "), said("go")])])
    assert history.append("assistant", [said("")]) == []
    assert history.append("user", "  \n") == []
    assert history.wire() == [{"role": "user", "content": [said("go")]}]
    assert len(history) == 1


def test_open_calls_and_known_ids() -> None:
    history = History([START, (A, [said(), use("a"), use("b")])])
    assert history.open_calls == ["a", "b"]
    history.append("user", [result("a"), result("b"), said("behind")])
    assert history.open_calls == []
    assert history.knows("a") and not history.knows("c")


@given(legal())
def test_the_encoded_history_is_the_json_of_its_messages(messages: Messages) -> None:
    history = History()
    for role, content in messages:
        history.append(role, content)
        assert json.loads(history.encode()) == history.wire()
    assert fault(history.wire()) is None


def test_neighbours_of_one_role_are_one_message_on_the_wire() -> None:
    history = History([(U, "one"), (U, "two"), (A, [said("x")]), (A, [said("y")])])
    assert history.wire() == [{"role": "user", "content": [said("one"), said("two")]},
                              {"role": "assistant", "content": [said("x"), said("y")]}]
    assert json.loads(history.encode()) == history.wire()
    assert History().encode() == b"[]" and History().wire() == []


def test_the_bytes_of_an_old_message_are_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work of a turn must not grow with the history: no block is encoded twice, no closed message is built twice."""
    history = History([(U, "one"), (A, [said("two")]), (U, "three")])
    closed = list(history._closed)
    monkeypatch.setattr("kernel.messages._encode", lambda value: pytest.fail(f"encoded again: {value}"))
    history.encode()
    monkeypatch.undo()
    history.append("assistant", [said("four")])
    assert all(a is b for a, b in zip(history._closed, closed, strict=False))
    assert len(history._closed) == len(closed) + 1


def test_a_mark_is_on_the_last_block_of_this_request_only() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    history = History([(U, "one"), (A, [said("two")]), (U, [said("three"), said("four")])])
    marked = json.loads(history.encode(mark))
    assert marked[-1]["content"] == [said("three"), {**said("four"), **mark}]
    assert "cache_control" not in json.dumps([marked[:-1], history.wire(), json.loads(history.encode())])


@pytest.mark.parametrize("block", [thought(), {"type": "redacted_thinking", "data": "x"}])
def test_a_mark_never_stands_on_thinking(block: Block) -> None:
    history = History([(U, "one"), (A, [block])])
    assert "cache_control" not in history.encode({"cache_control": {"type": "ephemeral"}}).decode()


def test_lone_surrogates_do_not_reach_the_wire() -> None:
    history = History([(U, "cut \ud83d"), (A, [use("a", text="\udc00")]), (U, [result("a", "😀")])])
    sent = json.loads(history.encode())
    assert sent[0]["content"] == [said("cut �")]
    assert sent[1]["content"][0]["input"] == {"text": "�"}
    assert sent[2]["content"][0]["content"] == "😀"


# -- small things -----------------------------------------------------------------------------------------------------------
@given(st.text(st.characters(exclude_categories=())))
def test_scrubbed_text_can_be_encoded_and_good_text_is_untouched(text: str) -> None:
    clean = scrub({"k": [text, (text,)]})
    assert clean["k"][0] == clean["k"][1][0]
    encode(clean)
    clean["k"][0].encode("utf-8")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        assert "�" in clean["k"][0]
    else:
        assert clean["k"][0] == text


def test_text_of_and_blocks_of() -> None:
    assert text_of("plain") == "plain"
    assert text_of([said("a"), use("x"), said("b")]) == "ab"
    assert blocks_of("x") == [text_block("x")]
    assert blocks_of([said(" "), use("x")]) == [use("x")]
    assert reminder("note") == said("<system-reminder>\nnote\n</system-reminder>")


def test_blocks_whose_type_is_no_text_are_dropped() -> None:
    odd: Any = [{"type": [5]}, {"type": None}, {}, {"type": "text", "text": "x"}]
    assert normalise([("user", odd), ("assistant", odd), ("user", "y")])[0] == [
        ("user", [text_block("x")]), ("assistant", [text_block("x")]), ("user", [text_block("y")])]
