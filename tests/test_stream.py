"""One answer out of many events (loop contract, section 4): nothing counts before it is complete, nothing is repaired."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from kernel.models import Response, Usage
from kernel.stream import Assembler

Event = dict[str, Any]


def start(index: int, block: dict[str, Any]) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> Event:
    return {"type": "content_block_stop", "index": index}


def say(index: int, *pieces: str) -> list[Event]:
    return [start(index, {"type": "text", "text": ""}), *(delta(index, "text_delta", text=p) for p in pieces), stop(index)]


def use(index: int, *pieces: str, id: str = "t1", type: str = "tool_use") -> list[Event]:
    return [start(index, {"type": type, "id": id, "name": "Read", "input": {}}),
            *(delta(index, "input_json_delta", partial_json=p) for p in pieces), stop(index)]


def begin(**usage: Any) -> Event:
    return {"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": usage}}


def end(reason: str | None = "end_turn", **usage: Any) -> list[Event]:
    return [{"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}, {"type": "message_stop"}]


def assembled(events: Iterable[Event], **options: bool) -> Response:
    assembler = Assembler()
    for event in events:
        assembler.take(event)
    return assembler.response(**options)


# -- tool inputs ----------------------------------------------------------------------------------------------------------
VALUES = st.recursive(st.none() | st.booleans() | st.integers(-2**60, 2**60) | st.text(),
                      lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8)


@given(st.dictionaries(st.text(), VALUES, max_size=4), st.booleans())
def test_an_input_that_comes_one_character_per_delta_is_whole(value: dict[str, Any], ascii: bool) -> None:
    """This splits every token and every ``\\u`` escape."""
    raw = json.dumps(value, ensure_ascii=ascii)
    response = assembled([begin(), *use(0, *raw), *end("tool_use")])
    assert response.blocks == [{"type": "tool_use", "id": "t1", "name": "Read", "input": value}]
    assert response.bad_inputs == {}
    assert response.calls == response.blocks


@pytest.mark.parametrize("pieces", [
    ['{"text": "\\', 'u00', 'e9"}'], ['{"text": "\\u00e', '9"}'], ['{"te', 'xt": "é"}'], ["", '{"text":', "", ' "é"}', ""]])
def test_a_split_escape_is_joined_before_it_is_read(pieces: list[str]) -> None:
    assert assembled(use(0, *pieces)).blocks[0]["input"] == {"text": "é"}


@pytest.mark.parametrize("pieces", [[], [""], ["", ""], [" \n"], ["{}"]])
def test_an_empty_input_is_an_empty_object(pieces: list[str]) -> None:
    response = assembled(use(0, *pieces))
    assert (response.blocks[0]["input"], response.bad_inputs) == ({}, {})


@pytest.mark.parametrize(("raw", "says"), [
    ('{"a": 1', "not valid JSON"), ('{"a": 1}}', "not valid JSON"), ("{'a': 1}", "not valid JSON"), ("no", "not valid JSON"),
    ('{"a": NaN}', "not valid JSON"), ('{"a": "\\ud83d"}', "not valid JSON"), ('"text"', "must be a JSON object, found str"),
    ("[1]", "must be a JSON object, found list"), ("7", "found int"), ("null", "found NoneType"), ("true", "found bool"),
    ("[" * 100_000, "not valid JSON"), ('{"a": "\ud83d"}', "not Unicode")])
def test_an_input_that_does_not_parse_is_kept_out_and_explained(raw: str, says: str) -> None:
    response = assembled([begin(), *use(0, raw), *end("tool_use")])
    assert response.blocks[0]["input"] == {}
    assert says in response.bad_inputs["t1"]
    assert len(response.bad_inputs["t1"]) < 1000
    json.dumps(response.blocks)


def test_the_raw_text_of_a_bad_input_is_shown_cut() -> None:
    assert "nonsense" in assembled(use(0, "nonsense")).bad_inputs["t1"]


@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use"])
def test_inputs_of_server_tools_are_read_but_they_are_no_calls_of_ours(kind: str) -> None:
    response = assembled(use(0, '{"q": 1}', type=kind) + say(1, "x"))
    assert response.blocks[0]["input"] == {"q": 1}
    assert response.calls == []


# -- blocks ---------------------------------------------------------------------------------------------------------------
def test_text_is_joined_to_a_start_that_need_not_be_empty() -> None:
    events = [start(0, {"type": "text", "text": "One"}), *(delta(0, "text_delta", text=t) for t in (", two", "")), stop(0)]
    assert assembled(events).blocks == [{"type": "text", "text": "One, two"}]


def test_blocks_stand_by_index_whatever_the_order_of_their_events() -> None:
    one, two = say(0, "a", "b"), use(1, '{"x"', ": 1}")
    mixed = [two[0], one[0], two[1], one[1], one[2], two[2], two[3], one[3]]
    assert [b["type"] for b in assembled(mixed).blocks] == ["text", "tool_use"]
    assert assembled(mixed).blocks == assembled(one + two).blocks


def test_thinking_keeps_its_signature_byte_for_byte() -> None:
    signature = "EqRb+/==\u00e9"
    events = [start(0, {"type": "thinking", "thinking": "", "signature": ""}), delta(0, "thinking_delta", thinking="I "),
              delta(0, "thinking_delta", thinking="think"), delta(0, "signature_delta", signature=signature), stop(0)]
    assert assembled(events).blocks == [{"type": "thinking", "thinking": "I think", "signature": signature}]


def test_omitted_thinking_is_kept_with_its_signature() -> None:
    events = [start(0, {"type": "thinking", "thinking": ""}), delta(0, "signature_delta", signature="s"), stop(0)]
    assert assembled(events).blocks == [{"type": "thinking", "thinking": "", "signature": "s"}]


def test_citations_are_collected() -> None:
    events = [start(0, {"type": "text", "text": ""}), delta(0, "citations_delta", citation={"n": 1}),
              delta(0, "text_delta", text="x"), delta(0, "citations_delta", citation={"n": 2}), stop(0)]
    assert assembled(events).blocks == [{"type": "text", "text": "x", "citations": [{"n": 1}, {"n": 2}]}]


def test_unknown_blocks_deltas_and_events_do_no_harm() -> None:
    compaction = {"type": "compaction", "content": None, "extra": [1]}
    events = [begin(), {"type": "ping"}, {"type": "brand_new", "index": 0}, {}, start(0, dict(compaction)), stop(0),
              start(1, {"type": "compaction", "content": ""}), delta(1, "compaction_delta", content="a"),
              delta(1, "compaction_delta", content="b"), stop(1), *say(2, "x"), *end()]
    assert assembled(events).blocks == [compaction, {"type": "compaction", "content": "ab"}, {"type": "text", "text": "x"}]


@pytest.mark.parametrize("event", [
    {"type": "content_block_delta"}, {"type": "content_block_delta", "index": None, "delta": {}},
    {"type": "content_block_delta", "index": 5, "delta": {"type": "text_delta", "text": "lost"}},
    {"type": "content_block_delta", "index": 0, "delta": None}, {"type": "content_block_delta", "index": [], "delta": {}},
    {"type": "content_block_start"}, {"type": "content_block_start", "index": "x", "content_block": {"type": "text"}},
    {"type": "content_block_start", "index": 3, "content_block": "text"}, {"type": "content_block_stop", "index": 9},
    {"type": "content_block_stop"}, {"type": "message_start"}, {"type": "message_start", "message": {"usage": [1]}},
    {"type": "message_delta"}, {"type": "message_delta", "delta": None, "usage": "x"}, {"type": None}, {"type": ["x"]}])
def test_an_event_out_of_place_is_ignored(event: Event) -> None:
    response = assembled([start(0, {"type": "text", "text": ""}), delta(0, "text_delta", text="x"), event, stop(0)])
    assert response.blocks == [{"type": "text", "text": "x"}] or event == {"type": "content_block_stop"}


def test_a_block_counts_at_its_stop_and_not_before() -> None:
    events = [begin(), *say(0, "whole"), start(1, {"type": "text", "text": ""}), delta(1, "text_delta", text="half")]
    assert assembled(events).blocks == [{"type": "text", "text": "whole"}]
    assert assembled(events, broken=True).incomplete


def test_half_a_character_is_replaced_in_the_whole_answer() -> None:
    response = assembled([begin(), *say(0, "cut \ud83d"), *say(1, "\ud83d", "\ude00"), *end()])
    assert [b["text"] for b in response.blocks] == ["cut �", "😀"]


# -- usage and ends ---------------------------------------------------------------------------------------------------------
def test_usage_is_overwritten_and_what_is_missing_stays() -> None:
    response = assembled([begin(input_tokens=10, output_tokens=1, cache_read_input_tokens=7), *say(0, "x"),
                          {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
                          {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 9, "input_tokens": None}}])
    assert (response.usage.input_tokens, response.usage.output_tokens, response.usage.cache_read_input_tokens) == (10, 9, 7)
    assert response.stop_reason == "end_turn"


def test_usage_in_parts() -> None:
    response = assembled([begin(cache_creation={"ephemeral_1h_input_tokens": 3, "later": 1}, service_tier="priority",
                                server_tool_use={"web_search_requests": 2, "x": "no number"}), *end()])
    assert response.usage.cache_creation == {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 3, "later": 1}
    assert response.usage.server_tool_use == {"web_search_requests": 2, "web_fetch_requests": 0}
    assert response.usage.service_tier == "priority"


def test_usages_add_up() -> None:
    total = Usage()
    for n in (1, 2):
        total.add(Usage(input_tokens=n, output_tokens=n, cache_read_input_tokens=n, cache_creation_input_tokens=n,
                        cache_creation={"ephemeral_1h_input_tokens": n}, server_tool_use={"web_search_requests": n}))
    assert (total.input_tokens, total.prompt_tokens, total.output_tokens) == (3, 9, 3)
    assert total.cache_creation["ephemeral_1h_input_tokens"] == 3
    assert total.server_tool_use["web_search_requests"] == 3


def test_stop_fields_are_taken() -> None:
    events = [begin(), *say(0, "x"), {"type": "message_delta", "delta": {
        "stop_reason": "refusal", "stop_sequence": None, "stop_details": {"type": "refusal", "category": "cyber"}}}]
    response = assembled(events)
    assert (response.id, response.model) == ("msg_1", "m")
    assert (response.stop_reason, response.stop_details) == ("refusal", {"type": "refusal", "category": "cyber"})


# -- cut answers ------------------------------------------------------------------------------------------------------------
CUT = ["max_tokens", "model_context_window_exceeded"]


@pytest.mark.parametrize("reason", CUT)
def test_the_last_call_of_a_cut_answer_is_dropped_even_if_it_parses(reason: str) -> None:
    response = assembled([begin(), *say(0, "x"), *use(1, "{}", id="whole"), *use(2, '{"a": 1}', id="cut"), *end(reason)])
    assert [b.get("id") for b in response.blocks] == [None, "whole"]
    assert response.cut_call


@pytest.mark.parametrize("reason", CUT)
def test_a_call_that_was_still_open_is_the_cut_one_and_the_others_stay(reason: str) -> None:
    response = assembled([begin(), *use(0, "{}", id="whole"), *use(1, '{"a":', id="cut")[:-1], *end(reason)])
    assert [b["id"] for b in response.blocks] == ["whole"]
    assert response.cut_call


@pytest.mark.parametrize("reason", CUT)
def test_cut_text_is_kept_and_no_call_was_cut(reason: str) -> None:
    response = assembled([begin(), *use(0, "{}", id="whole"), *say(1, "and"), *end(reason)])
    assert [b["type"] for b in response.blocks] == ["tool_use", "text"]
    assert not response.cut_call


def test_an_answer_that_ended_well_keeps_its_last_call() -> None:
    response = assembled([begin(), *use(0, "{}"), *end("tool_use")])
    assert len(response.calls) == 1 and not response.cut_call


def test_an_interrupt_keeps_the_text_that_was_shown_and_drops_an_open_call() -> None:
    events = [begin(), *say(0, "one"), start(1, {"type": "text", "text": ""}), delta(1, "text_delta", text="two"),
              *use(2, '{"a":')[:-1]]
    response = assembled(events, broken=True, keep_open_text=True)
    assert [b["text"] for b in response.blocks] == ["one", "two"]
    blank = [begin(), start(0, {"type": "text", "text": ""}), delta(0, "text_delta", text=" ")]
    assert assembled(blank, broken=True, keep_open_text=True).blocks == []


def test_a_server_tool_whose_result_never_came_is_dropped_from_a_broken_answer() -> None:
    """The API refuses one half without the other (5.2, row 8)."""
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    events = [begin(), *use(0, "{}", id="s1", type="server_tool_use"), start(1, found), stop(1),
              *use(2, "{}", id="s2", type="server_tool_use"), *say(3, "x")]
    assert [b.get("id") for b in assembled(events, broken=True).blocks] == ["s1", None, None]
    assert [b.get("id") for b in assembled([*events, *end("pause_turn")]).blocks] == ["s1", None, "s2", None]
