"""Every lifecycle event against the contract's machine-readable form (hooks contract, sections 10, 11 and 18)."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator

from kernel import answers, events, hookspecs
from kernel.answers import Answer, specific_fields
from kernel.events import ANSWERS, EVENTS, Event, encode, snake

NAMES = sorted(name for name, event in EVENTS.items() if not event.ours)
COMMON = {"session_id", "transcript_path", "cwd", "prompt_id", "permission_mode", "effort", "agent_id", "agent_type"}
UNIVERSAL = {"continue": False, "stopReason": "why", "suppressOutput": True, "systemMessage": "careful",
             "terminalSequence": "\x07", "decision": "block", "reason": "because"}


@pytest.fixture(scope="session")
def contract(shared: Path) -> dict[str, Any]:
    data = json.loads((shared / "contract" / "hook-events.json").read_text("utf-8"))
    return {name: entry for name, entry in data.items() if not name.startswith("$")}


def output_properties(entry: dict[str, Any]) -> dict[str, Any] | None:
    """The event's own output fields; ``None`` where it has none at all."""
    specific = entry["output"]["properties"]["hookSpecificOutput"]
    return None if specific is False else {k: v for k, v in specific["properties"].items() if k != "hookEventName"}


def sample(schema: dict[str, Any]) -> Any:
    """A value that fits a schema of the contract."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "oneOf" in schema:
        return sample(schema["oneOf"][0])
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {k: sample(v) for k, v in schema.get("properties", {}).items()}
    if kind == "array":
        return [sample(schema["items"])]
    return {"string": "text", "boolean": True, "integer": 1, "number": 1.5, "null": None}[kind]


def full_answer(name: str, entry: dict[str, Any]) -> dict[str, Any]:
    """An answer in which every documented field is set."""
    own = output_properties(entry)
    wire: dict[str, Any] = dict(UNIVERSAL)
    if own is not None:
        wire["hookSpecificOutput"] = {"hookEventName": name, **{k: sample(v) for k, v in own.items()}}
    return wire


# -- the three tables agree ---------------------------------------------------------------------------------------------
def test_the_events_are_exactly_those_of_the_contract(contract: dict[str, Any]) -> None:
    """... and those that say that they are ours."""
    assert set(NAMES) == set(contract)


def test_every_event_has_one_result_model() -> None:
    assert set(ANSWERS) == set(EVENTS)
    assert all(cls.event == name for name, cls in ANSWERS.items())


@pytest.mark.parametrize("name", NAMES)
def test_every_event_has_a_hookspec_that_takes_it_and_returns_its_result(name: str) -> None:
    spec = getattr(hookspecs, snake(name))
    assert getattr(spec, "kernel_spec", None) is not None
    assert tuple(inspect.signature(spec).parameters) == ("event", "session")
    hints = get_type_hints(spec, {"a": answers, "e": events, "Session": object})
    assert hints["event"] is EVENTS[name]
    assert set(get_args(hints["return"])) == {ANSWERS[name], type(None)}
    assert spec.__doc__


def test_no_lifecycle_hookspec_stands_for_anything_else() -> None:
    specs = {n for n, f in vars(hookspecs).items() if getattr(f, "kernel_spec", None) is not None}
    assert {n for n in specs if not n.startswith("register_")} == {snake(n) for n in EVENTS}


@pytest.mark.parametrize("name", NAMES)
def test_the_input_fields_are_those_of_the_contract(name: str, contract: dict[str, Any]) -> None:
    schema = contract[name]["input"]
    fields = {f.name: f for f in msgspec.structs.fields(EVENTS[name])}
    own = set(schema["properties"]) - COMMON - {"hook_event_name"}
    assert set(fields) - COMMON == own
    required = set(schema["required"]) - COMMON - {"hook_event_name"}
    assert {n for n in own if fields[n].required} == required


@pytest.mark.parametrize("name", NAMES)
def test_permission_mode_and_effort_go_with_the_marked_events_only(name: str, contract: dict[str, Any]) -> None:
    entry, cls = contract[name], EVENTS[name]
    assert cls.carries_mode == entry["receives_permission_mode"]
    assert cls.carries_effort == entry["receives_effort"]


@pytest.mark.parametrize("name", NAMES)
def test_the_matcher_field_is_that_of_the_contract(name: str, contract: dict[str, Any]) -> None:
    given = contract[name]["matcher_field"]
    expected = {"basename of file_path": "file_path", "to_model (canonical name)": "to_model"}.get(given, given)
    assert EVENTS[name].matcher == expected


# -- what a handler is given ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NAMES)
def test_the_example_survives_and_fits_the_schema(name: str, contract: dict[str, Any]) -> None:
    entry = contract[name]
    event = msgspec.convert(entry["example_input"], EVENTS[name])
    wire = json.loads(encode(event))
    assert wire == entry["example_input"]
    Draft202012Validator(entry["input"]).validate(wire)


@pytest.mark.parametrize("name", NAMES)
def test_an_event_with_every_field_fits_the_schema(name: str, contract: dict[str, Any]) -> None:
    schema = contract[name]["input"]
    full = {k: sample(v) for k, v in schema["properties"].items()}
    wire = json.loads(encode(msgspec.convert(full, EVENTS[name])))
    assert wire == full
    Draft202012Validator(schema).validate(wire)


@pytest.mark.parametrize("name", NAMES)
def test_an_event_with_required_fields_only_has_no_others(name: str, contract: dict[str, Any]) -> None:
    schema = contract[name]["input"]
    least = {k: sample(schema["properties"][k]) for k in schema["required"]}
    wire = json.loads(encode(msgspec.convert(least, EVENTS[name])))
    assert set(wire) == set(schema["required"])
    Draft202012Validator(schema).validate(wire)


@given(st.text(), st.recursive(st.none() | st.booleans() | st.integers(-2**53, 2**53) | st.text(),
                               lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)))
def test_encoding_keeps_any_text_and_any_value(text: str, value: Any) -> None:
    event = events.PostToolUse(session_id=text, transcript_path="/t", cwd=text, tool_name="Read", tool_input={"x": value},
                               tool_use_id="id", tool_response=value)
    wire = json.loads(encode(event))
    assert (wire["cwd"], wire["tool_input"], wire["tool_response"]) == (text, {"x": value}, value)
    assert b"\n" not in encode(event)


def test_a_hook_name_is_the_event_and_what_it_is_matched_by() -> None:
    common: dict[str, Any] = {"session_id": "s", "transcript_path": "/t", "cwd": "/"}
    table: list[tuple[Event, str, str | None]] = [
        (events.PreToolUse(**common, tool_name="Bash", tool_input={}, tool_use_id="1"), "PreToolUse:Bash", "Bash"),
        (events.Stop(**common, stop_hook_active=False), "Stop", None),
        (events.FileChanged(**common, file_path="/a/b/.envrc", event="add"), "FileChanged:.envrc", ".envrc"),
        (events.FileChanged(**common, file_path="C:\\a\\x.txt", event="add"), "FileChanged:x.txt", "x.txt"),
        (events.SubagentStart(**common, agent_type="Explore"), "SubagentStart:Explore", "Explore"),
        (events.SubagentStart(**common), "SubagentStart", ""),
    ]
    for event, name, value in table:
        assert (event.hook_name, event.match_value) == (name, value)


# -- what a handler may answer -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NAMES)
def test_the_output_fields_are_those_of_the_contract(name: str, contract: dict[str, Any]) -> None:
    own = output_properties(contract[name]) or {}
    cls = ANSWERS[name]
    names = {f.name: f.encode_name for f in msgspec.structs.fields(cls)}
    wire = {"decision" if n == "permission" else names[n] for n in specific_fields(cls) - set(cls.ours)}
    assert wire == set(own)


@pytest.mark.parametrize("name", NAMES)
def test_a_full_answer_is_read_and_written_back(name: str, contract: dict[str, Any]) -> None:
    wire = full_answer(name, contract[name])
    Draft202012Validator(contract[name]["output"]).validate(wire)
    answer = ANSWERS[name].from_wire(wire)
    assert type(answer) is ANSWERS[name]
    assert answer.to_wire() == wire
    assert ANSWERS[name].from_wire(answer.to_wire()) == answer


@pytest.mark.parametrize("name", NAMES)
def test_unknown_keys_are_ignored_at_every_level(name: str, contract: dict[str, Any]) -> None:
    wire = full_answer(name, contract[name])
    more = {**wire, "additionalContext": "at the root it means nothing", "x": [1]}
    if "hookSpecificOutput" in wire:
        more["hookSpecificOutput"] = {**wire["hookSpecificOutput"], "future": {"a": 1}}
    assert ANSWERS[name].from_wire(more).to_wire() == wire


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_answer_says_nothing(name: str) -> None:
    answer = ANSWERS[name].from_wire({})
    assert answer == ANSWERS[name]()
    assert answer.to_wire() == {}


WRONG: dict[str, tuple[Any, ...]] = {
    "continue": (0, "false", []), "stopReason": (1, ["x"]), "suppressOutput": ("yes", 1), "systemMessage": (1, {}),
    "terminalSequence": (7,), "decision": ("deny", "BLOCK", "", 1, True), "reason": (1, ["because"]),
    "hookSpecificOutput": ("x", [], 1)}


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_type_at_the_root_is_refused(name: str, contract: dict[str, Any]) -> None:
    valid = Draft202012Validator(contract[name]["output"]).is_valid
    for key, values in WRONG.items():
        for value in values:
            assert not valid({key: value})
            with pytest.raises(ValueError, match=key):
                ANSWERS[name].from_wire({key: value})


@pytest.mark.parametrize("value", ["text", 1, [], None, True])
def test_an_answer_must_be_an_object(value: Any) -> None:
    with pytest.raises(ValueError):
        events.StopResult.from_wire(value)


@pytest.mark.parametrize("name", NAMES)
def test_the_specific_output_must_name_its_event(name: str, contract: dict[str, Any]) -> None:
    own = output_properties(contract[name])
    wrong: list[Any] = [{"hookEventName": "Nothing"}, {"hookEventName": 1}, {"hookEventName": name.lower()}, {}]
    if own is None:
        wrong += [{"hookEventName": name}, None]
    for specific in wrong:
        with pytest.raises(ValueError):
            ANSWERS[name].from_wire({"hookSpecificOutput": specific})


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_type_in_the_specific_output_is_refused_with_its_path(name: str, contract: dict[str, Any]) -> None:
    for key, schema in (output_properties(contract[name]) or {}).items():
        valid = Draft202012Validator(schema).is_valid
        samples: tuple[Any, ...] = ("text", 1, 1.5, True, [], [1], {}, ["x"])
        for value in samples:
            if not valid(value) and not (key == "decision" and value == {}):
                with pytest.raises(ValueError, match=rf"hookSpecificOutput\.{key}"):
                    ANSWERS[name].from_wire({"hookSpecificOutput": {"hookEventName": name, key: value}})


def _values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Any value that fits a schema of the contract (the subset of JSON Schema that it uses)."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "const" in schema:
        return st.just(schema["const"])
    if "oneOf" in schema:
        return st.one_of([_values(s) for s in schema["oneOf"]])
    plain = {"string": st.text(max_size=5), "boolean": st.booleans(), "number": st.floats(allow_nan=False),
             "integer": st.integers(0, 9)}
    if schema.get("type") in plain:
        return plain[schema["type"]]
    if schema.get("type") == "array":
        return st.lists(_values(schema["items"]), max_size=2)
    if "properties" not in schema:
        return st.dictionaries(st.text(max_size=3), st.integers(0, 9) | st.text(max_size=3), max_size=2)
    required = schema.get("required", [])
    return st.fixed_dictionaries({k: _values(v) for k, v in schema["properties"].items() if k in required},
                                 optional={k: _values(v) for k, v in schema["properties"].items() if k not in required})


@given(data=st.data())
def test_whatever_the_output_schema_accepts_is_accepted_and_kept(data: st.DataObject, contract: dict[str, Any]) -> None:
    name = data.draw(st.sampled_from(NAMES))
    schema = contract[name]["output"]
    properties = {k: v for k, v in schema["properties"].items() if v is not False}
    wire = data.draw(st.fixed_dictionaries({}, optional={k: _values(v) for k, v in properties.items()}))
    Draft202012Validator(schema).validate(wire)
    answer: Answer = ANSWERS[name].from_wire(wire)
    again = ANSWERS[name].from_wire(answer.to_wire())
    assert again == answer
    Draft202012Validator(schema).validate(answer.to_wire())
