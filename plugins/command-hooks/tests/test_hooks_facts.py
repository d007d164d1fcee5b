"""The table of facts against the contract's data, where that is at hand."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from kernel_command_hooks.facts import ALWAYS_STREAMED, FACTS, NEEDS_RESULT, NEVER_STARTED

from kernel import ANSWERS, EVENTS

SHARED = Path(os.environ.get("KERNEL_SHARED", Path(__file__).parents[4] / "shared"))
DATA = SHARED / "contract" / "hook-events.json"

needs_contract = pytest.mark.skipif(not DATA.exists(), reason=f"the contract's data is not at {DATA}")


def contract() -> dict[str, Any]:
    return json.loads(DATA.read_text()) if DATA.exists() else {}


EVENTS_OF_CONTRACT = {k: v for k, v in contract().items() if not k.startswith("$")}


def test_every_event_has_its_row() -> None:
    assert FACTS.keys() == {name for name, event in EVENTS.items() if not event.ours}


@pytest.mark.parametrize("event", FACTS)
def test_only_fields_that_exist_are_honoured(event: str) -> None:
    assert FACTS[event].honours <= set(ANSWERS[event].__struct_fields__)


@needs_contract
@pytest.mark.parametrize("event", EVENTS_OF_CONTRACT)
def test_a_row_agrees_with_the_contract(event: str) -> None:
    row, wire = FACTS[event], EVENTS_OF_CONTRACT[event]
    assert row.output == wire["output_class"]
    assert list(row.types) == wire["handlers"]
    assert row.env_file is wire["env_file"]
    assert row.rules is wire["if_supported"]
    assert row.narrow is (wire["matcher_exact_class"] == "narrow")
    assert (EVENTS[event].matcher is None) is (wire["matcher_field"] is None)
    assert row.plain is (wire["plain_stdout"] == "context")
    assert row.background is ("background" in wire["sync"])
    for type, seconds in wire["default_timeout_s"].items():
        if type != "shared_budget":
            assert row.default_timeout(type) == seconds, type


@needs_contract
@pytest.mark.parametrize("event", EVENTS_OF_CONTRACT)
def test_exit_2_does_what_the_contract_says(event: str) -> None:
    """A refusal where the event can be refused or the model is told; otherwise whoever is told is told."""
    row, wire = FACTS[event], EVENTS_OF_CONTRACT[event]
    to = wire["exit2_message_to"]
    expected = {"model": ("block", "deny"), "user": ("block", "notice"), "subagent_transcript": ("notice",),
                "debug": ("debug", "block"), "nowhere": ("ignored", "decline")}[to]
    assert row.exit2 in expected
    if wire["can_block"]:
        assert row.refuses
    elif to != "model":
        assert not row.refuses


@needs_contract
@pytest.mark.parametrize("event", EVENTS_OF_CONTRACT)
def test_every_field_of_an_answer_that_the_contract_honours_counts(event: str) -> None:
    row, wire = FACTS[event], EVENTS_OF_CONTRACT[event]
    own = (wire["output"]["properties"].get("hookSpecificOutput") or {})
    fields = set(own.get("properties", {})) - {"hookEventName"} if isinstance(own, dict) else set()
    python = {f.encode_name: f.name for f in __import__("msgspec").structs.fields(ANSWERS[event])}
    named = {python.get("permission" if event == "PermissionRequest" and f == "decision" else f) for f in fields}
    without_effect = {"additional_context"} if event == "Notification" else set()
    assert named - without_effect <= row.honours


@needs_contract
def test_the_lists_of_events_agree_with_the_contract() -> None:
    meta = contract()["$meta"]
    assert sorted(ALWAYS_STREAMED) == sorted(meta["always_streamed"])
    assert sorted(NEVER_STARTED) == sorted(meta["no_hook_started_message"])
    assert {e for e, row in FACTS.items() if row.rules} == set(meta["if_events"])
    assert {e for e, row in FACTS.items() if row.env_file} == set(meta["env_file_events"])
    assert {e for e, row in FACTS.items() if row.plain and EVENTS_OF_CONTRACT[e]["baseline"]} == set(
        meta["plain_stdout_context_events"])
    assert FACTS.keys() >= NEEDS_RESULT
