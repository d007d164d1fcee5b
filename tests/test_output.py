"""Messages for front ends: documented JSON, one line each, whatever is in them (headless contract, section 5)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, strategies as st

from kernel.models import Usage
from kernel.output import AssistantMessage, ResultMessage, SystemMessage, ToolProgress, UserMessage, encode_output, to_wire

ANY_TEXT = st.text(st.characters(exclude_categories=()))
IDS: dict[str, Any] = {"uuid": "u", "session_id": "s"}


def result(**more: Any) -> ResultMessage:
    return ResultMessage(**{**IDS, "subtype": "success", "is_error": False, "duration_ms": 1, "duration_api_ms": 1,
                            "num_turns": 1, "stop_reason": None, "total_cost_usd": 0.0, "usage": Usage(), "model_usage": {},
                            "permission_denials": [], "terminal_reason": "completed", **more})


@given(ANY_TEXT)
def test_any_text_is_one_line_of_json_that_every_reader_splits_alike(text: str) -> None:
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    said = UserMessage(**IDS, message={"content": text}, parent_tool_use_id=None, tool_use_result={text: text})
    banner = SystemMessage(**IDS, subtype="informational", data={"content": text})
    for message in (said, banner, result(result=text)):
        line = encode_output(message)
        assert len(line.decode("utf-8").splitlines()) == 1
        wire = json.loads(line)
        message_text = wire.get("message", {}).get("content")
        shown = (wire.get("result"), wire.get("content"), message_text, *wire.get("tool_use_result", ()))
        assert set(shown) - {None} == {clean}


def test_the_documented_spelling() -> None:
    message = UserMessage(**IDS, message={}, parent_tool_use_id=None, is_synthetic=True, is_replay=True)
    assert to_wire(message) == {"type": "user", "uuid": "u", "session_id": "s", "message": {}, "parent_tool_use_id": None,
                                "isSynthetic": True, "isReplay": True}
    assert to_wire(AssistantMessage(**IDS, message={}, parent_tool_use_id="p", error="overloaded")) == {
        "type": "assistant", "uuid": "u", "session_id": "s", "message": {}, "parent_tool_use_id": "p", "error": "overloaded"}
    progress = ToolProgress(**IDS, tool_use_id="t", tool_name="Bash", parent_tool_use_id=None, elapsed_time_seconds=1.0)
    assert to_wire(progress)["type"] == "tool_progress" and "heartbeat" not in to_wire(progress)


def test_the_fields_of_a_system_message_stand_at_the_root() -> None:
    assert to_wire(SystemMessage(**IDS, subtype="status", data={"status": None})) == {
        "type": "system", "subtype": "status", "status": None, "uuid": "u", "session_id": "s"}


def test_what_a_result_does_not_have_is_left_out_and_what_it_must_have_is_there() -> None:
    wire = to_wire(result(result="x"))
    assert not {"errors", "api_error_status", "structured_output", "origin", "user_message_uuid"} & set(wire)
    assert wire["modelUsage"] == {} and wire["stop_reason"] is None and wire["permission_denials"] == []
    assert set(wire["usage"]) >= {"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens",
                                  "cache_creation", "server_tool_use", "service_tier"}
    assert to_wire(result(errors=["x"], api_error_status=None))["api_error_status"] is None


def test_a_value_that_json_does_not_know_is_shown_as_text() -> None:
    line = encode_output(SystemMessage(**IDS, subtype="x", data={"value": {1, }, "path": object}))
    assert json.loads(line)["path"] == str(object)
