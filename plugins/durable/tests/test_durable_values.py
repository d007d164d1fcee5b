"""What steps come to, as JSON and back: nothing is lost on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings, strategies as st
from kernel_durable import values
from kernel_durable.keeper import tool_call

from kernel import ModelError, Outcome, PostToolUseResult, PreToolUseResult, ReadState, State, StreamError, ToolError, ToolResult
from kernel.models import Response
from kernel.stream import Assembler

STATE = State(cwd="/w", model="m", permission_mode="default")
TEXT = st.text(max_size=20)
DELTAS = st.one_of(TEXT.map(lambda t: {"type": "text_delta", "text": t}),
                   TEXT.map(lambda t: {"type": "thinking_delta", "thinking": t}),
                   st.just({"type": "signature_delta", "signature": "s"}), st.just({"type": "new_delta", "what": "x"}))


@st.composite
def streams(draw: Any) -> list[dict[str, Any]]:
    """A stream with blocks that are mixed up, pings between, and pieces of a call's input."""
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 3}}}]
    for index in range(draw(st.integers(0, 3))):
        raw = json.dumps({"key": draw(TEXT)})
        cut = draw(st.integers(0, len(raw)))
        call = [{"type": "input_json_delta", "partial_json": raw[:cut]}, {"type": "input_json_delta", "partial_json": raw[cut:]}]
        is_call = draw(st.booleans())
        start = {"type": "tool_use", "id": f"t{index}", "name": "T", "input": {}} if is_call else {"type": "text", "text": ""}
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        for delta in call if is_call else draw(st.lists(DELTAS, max_size=6)):
            events += [{"type": "ping"}] * draw(st.integers(0, 1))
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    return [*events, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
            {"type": "message_stop"}]


def assembled(events: list[dict[str, Any]]) -> Response:
    assembler = Assembler()
    for event in events:
        assembler.take(event)
    return assembler.response()


@settings(max_examples=60, deadline=None)
@given(streams(), st.integers(0, 40))
def test_a_stream_is_the_same_answer_after_it_was_kept(events: list[dict[str, Any]], cut: int) -> None:
    kept = values.read(values.text({"events": values.joined(events)}))["events"]
    assert assembled(kept) == assembled(events) and len(kept) <= len(events)
    broken = [*values.joined(events[:cut])]
    assert assembled(broken) == assembled(events[:cut])


@settings(max_examples=60, deadline=None)
@given(content=st.one_of(TEXT, st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}), max_size=2)),
       status=st.sampled_from(["success", "empty", "fatal_error", "cancelled"]),
       structured=st.one_of(st.none(), st.dictionaries(TEXT, TEXT)),
       cwd=st.sampled_from(["/w", "/elsewhere"]), grants=st.lists(TEXT, max_size=2))
def test_a_result_is_the_same_after_it_was_kept(content: Any, status: Any, structured: Any, cwd: str, grants: list[str]) -> None:
    after = msgspec.structs.replace(STATE, cwd=cwd, grants=tuple(grants))
    result = ToolResult(content=content, status=status, structured=structured, evidence_ids=("e1",),
                        new_messages=({"type": "text"},), context_modifier=lambda state: after)
    again = values.result_of(values.read(values.text(values.result_wire(result, STATE))))
    assert again.context_modifier is None or again.context_modifier(STATE) == after
    assert (again.context_modifier is None) == (after == STATE)
    assert msgspec.structs.replace(again, context_modifier=None) == msgspec.structs.replace(result, context_modifier=None)


def test_errors_hooks_and_files_come_back() -> None:
    for error in (ModelError("no", kind="overloaded_error", status=529), StreamError("cut", kind="connection_error")):
        again = values.failed(values.failure(error))
        assert (type(again), again.message, again.kind, again.status) == (type(error), error.message, error.kind, error.status)
    tool = values.raise_again(values.raised(ToolError("gone", "it is gone", retryable=True, structured={"a": 1})))
    assert isinstance(tool, ToolError) and (tool.code, str(tool)) == ("gone", "it is gone")
    assert (tool.retryable, tool.structured) == (True, {"a": 1})
    crash = values.raise_again(values.raised(KeyError("k")))
    assert (type(crash).__name__, str(crash)) == ("KeyError", "'k'")
    denied = PreToolUseResult(permission_decision="deny", permission_decision_reason="r", source="s", rank=2)
    said = [Outcome("p", denied, None, 0.1),
            Outcome("q", None, None, 0.0), Outcome("r", None, ValueError("bad"), 0.0)]
    back = values.outcomes_of("PreToolUse", values.read(values.text({"o": values.outcomes_wire(said)}))["o"])
    assert back[:2] == said[:2] and (back[2].plugin, str(back[2].error)) == ("r", "bad")
    context = [Outcome("p", PostToolUseResult(additional_context="\ud800"), None, 0.0)]
    assert values.read(values.text({"o": values.outcomes_wire(context)}))["o"][0]["plugin"] == "p"
    seen = {"/f": ReadState(mtime_ns=2**60, size=3, digest="d", start=1, end=2, partial=True)}
    assert values.files_of(values.read(values.text(values.files_wire({}, seen)))) == seen and values.files_wire(seen, seen) == {}


def test_keys_of_calls_are_told_from_what_happens_in_them() -> None:
    assert tool_call("3/tool:t1", "") == tool_call("3/tool:t1?0", "") == "t1"
    assert tool_call("3/tool:t1?0", "3/", exact=True) is None and tool_call("3/tool:t1", "3/", exact=True) == "t1"
    assert tool_call("3/tool:t1/agent0/2/tool:t2", "") is None
    assert tool_call("3/tool:t1/agent0/2/tool:t2", "3/tool:t1/agent0/") == "t2"
    assert tool_call("3/hooks:PreToolUse:t1:0", "") is None


def test_the_settings_of_the_page_are_read(tmp_path: Path) -> None:
    """Every JSON example of docs/durable.md is one that the plugin takes; every command of it exists."""
    import re

    from kernel_durable.commands import WORDS
    from kernel_durable.config import config

    from kernel import Settings

    page = (Path(__file__).parents[3] / "docs" / "durable.md").read_text("utf-8")
    examples = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        made = Settings.load(tmp_path, cli=example)
        assert config(made).unknown[-1] == ("*", "skip")
    assert set(re.findall(r"kernel durable ([a-z]+)", page)) == WORDS.keys()
