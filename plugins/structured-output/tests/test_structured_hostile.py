"""Schemas and values that mean harm, forks, two runs, settings that say nothing, checks of plain answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from kernel_structured_output import apart, patterns
from kernel_structured_output.repair import check, example, problems_of
from kernel_structured_output.schema import check as checked

from kernel import OutputProblem, StopResult, Tool, ToolContext, ToolResult, UsageError
from kernel.testing import Kit, call, module, text

from .test_structured_run import answer, kit, meaning, said

pytestmark = pytest.mark.anyio
LOOP = {"definitions": {"a": {"$ref": "#/definitions/a"}}, "$ref": "#/definitions/a"}
LOOPS = {
    "definitions": {"a": {"allOf": [{"$ref": "#/definitions/b"}]}, "b": {"not": {"$ref": "#/definitions/a"}}},
    "type": "object",
}
DOUBLING = {
    "definitions": {
        f"d{n}": {"properties": {"x": {"$ref": f"#/definitions/d{n + 1}"}, "y": {"$ref": f"#/definitions/d{n + 1}"}}}
        for n in range(40)
    }
    | {"d40": {}},
    "type": "object",
    "properties": {"a": {"$ref": "#/definitions/d0"}},
}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (LOOP, "leads back to itself"),
        (LOOPS, "leads back to itself"),
        (DOUBLING, "schema too large"),
        ({"foo": {"$ref": "http://x.example/y"}, "properties": {"a": {"$ref": "#/foo"}}}, "$ref 'http://x.example/y'"),
        ({"foo": {"type": "objekt"}, "properties": {"a": {"$ref": "#/foo"}}}, "objekt"),
        ({"foo": {"pattern": "("}, "properties": {"a": {"$ref": "#/foo"}}}, "pattern '('"),
        ({"foo": [1], "properties": {"a": {"$ref": "#/foo"}}}, "does not lead"),
        ({"properties": {"a": {"pattern": "\\p{L}"}}}, "pattern"),
        ({"properties": {"a": {"pattern": "("}, "b": {"type": "no"}}}, "not valid"),
        ({"a": {1, 2}}, "not a valid"),
    ],
)
def test_a_schema_that_means_harm_is_refused_in_one_line(schema: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked(schema)
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"pattern": "^[0-9]+$"}, "12", "12\n"),
        ({"pattern": "^(?<y>\\d{4})-\\k<y>$"}, "1999-1999", "1999-2000"),
        ({"pattern": "^\\d$"}, "3", "٣"),
        ({"pattern": "^[^]$"}, "\n", "ab"),
        ({"pattern": "^a\\/b[$]\\$$"}, "a/b$$", "a/b$"),
        ({"pattern": "^[[a]+$"}, "[a", "b"),
        (
            {
                "$id": "http://x.example/s",
                "definitions": {"n": {"$id": "other.json", "type": "number"}},
                "$ref": "#/definitions/n",
            },
            1,
            "1",
        ),
        ({"definitions": {"a b": {"type": "number"}}, "$ref": "#/definitions/a%20b"}, 1, "1"),
        ({"properties": {"n": {"$ref": "#"}}, "required": ["k"]}, {"k": 1, "n": {"k": 2}}, {"k": 1, "n": {}}),
    ],
)
def test_patterns_are_those_of_ecma_and_references_stay_inside(schema: Any, good: Any, bad: Any) -> None:
    made = checked(schema)
    assert problems_of(made, good) == [] and problems_of(made, bad)
    assert all(p.expected == schema["pattern"] for p in problems_of(made, bad) if p.rule == "pattern")


async def test_a_pattern_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = checked({"properties": {"a": {"pattern": "^(a+)+$"}}})
    assert await check(schema, {"a": "aaaa"}) == [] and (await check(schema, {"a": "b"}))[0].expected == "^(a+)+$"
    monkeypatch.setattr(apart, "LIMIT_S", 1.5)
    (problem,) = await check(schema, {"a": "a" * 60 + "!"})
    assert problem.rule == "pattern" and "within 1.5 s" in problem.expected


@pytest.mark.parametrize(
    ("pattern", "size", "long"),
    [
        ("^[a-z]+$", 100, False),
        ("^(a|aa)+$", 1, True),
        (r"(.)\1", 1, True),
        (".*.*x", 100, False),
        (".*.*x", 1_000, True),
        ("x", 50_000, True),
    ],
)
def test_which_patterns_are_checked_apart(pattern: str, size: int, long: bool) -> None:
    assert patterns.may_take_long(pattern, size) is long


HUGE = {"type": "object", "required": ["a", "b", "c"], "properties": {k: {"$ref": "#"} for k in "abc"}}


@pytest.mark.parametrize(
    ("schema", "small"),
    [
        (HUGE, None),
        ({"type": "array", "minItems": 10**9}, None),
        ({"type": "string", "minLength": 10**9}, None),
        ({"allOf": [True, {"type": "integer"}]}, 0),
        ({"type": "object", "required": ["n"], "properties": {"n": {"enum": [7]}}}, {"n": 7}),
        ({"type": "array", "minItems": 2, "items": {"type": "boolean"}}, [False, False]),
        ({"$defs": {"a b": {"const": 7}}, "properties": {"x": {"$ref": "#/$defs/a%20b"}}, "required": ["x"]}, {"x": 7}),
    ],
)
def test_an_example_is_small_and_fits_or_is_left_out(schema: Any, small: Any) -> None:
    assert example(checked(schema)) == small


async def test_odd_values_are_answered_and_never_crash(tmp_path: Path) -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    odd = [answer(n="\ud800"), answer(n=1e999), answer(n=deep), answer(n=deep), answer(n=1)]
    run = await kit(tmp_path, *odd).run("go")
    assert run.result.structured_output == {"n": 1}
    assert ["not valid JSON" in said(run, n) for n in range(1, 5)] == [True, True, False, False]
    assert "same value" in said(run, 4)


async def test_a_wrapped_value_that_is_missing_is_no_null(tmp_path: Path) -> None:
    run = await kit(tmp_path, answer(other=1), answer(value=None), schema={"type": ["object", "null"]}).run("go")
    assert run.result.structured_output is None and json.loads(said(run).splitlines()[0])["rule"] == "required"


async def test_the_value_of_one_run_is_not_that_of_the_next(tmp_path: Path) -> None:
    made = kit(tmp_path, answer(n=1), *[text("no value")] * 6)
    run = await made.run("go")
    run.session.inbox.post("something ended")
    second = await run.session.submit(None)
    assert run.result.structured_output == {"n": 1} and second.subtype == "error_max_structured_output_retries"


class Wait(Tool):
    name = "Wait"
    description = "Waits a moment."
    input_schema = {"type": "object"}
    permission = "free"

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        await anyio.sleep(0.02)
        return ToolResult(content="waited")


async def test_a_fork_has_the_tool_in_its_request_and_cannot_hand_in_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_FORK_SUBAGENT", "1")
    asked: list[dict[str, Any]] = []

    def play(body: dict[str, Any]) -> Any:
        texts = [b["text"] for m in body["messages"] if m["role"] == "user" for b in m["content"] if b["type"] == "text"]
        if any("Look into it." in t and "REPORT" not in t for t in texts):
            asked.append(body)
            return text("REPORT") if "Only the conversation" in json.dumps(body["messages"]) else answer(n=5)
        if len(body["messages"]) == 1:
            return call("Agent", description="d", prompt="Look into it.", subagent_type="fork")
        return answer(n=1) if any("REPORT" in t for t in texts) else call("Wait")

    made = kit(tmp_path, *[play] * 99, tools=[Wait()], plugins=["subagents"])
    run = await made.run("go")
    assert run.result.structured_output == {"n": 1} and len(asked) == 2
    assert "StructuredOutput" in [t["name"] for t in asked[0]["tools"]]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ([1], "kernel.structuredOutput: must be an object"),
        ({"validators": "exact"}, "validators: must be a list"),
        ({"validator": []}, "there is no such setting"),
        ({"exact": {"n": 1}}, "'n' is no JSON pointer"),
        ({"sideEffects": {"/n": 1}}, "must name a tool"),
        ({"onExhausted": "maybe"}, "onExhausted"),
        ({"format": {"maxLength": True}}, "maxLength"),
        ({"format": {"pattern": "x"}}, "format.pattern"),
        ({"plainAnswers": "yes"}, "plainAnswers"),
    ],
)
def test_a_setting_that_says_nothing_is_refused_by_name(tmp_path: Path, settings: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        kit(tmp_path, settings={"kernel": {"structuredOutput": settings}}).open()
    assert words in str(caught.value)


async def test_when_the_tries_of_a_scope_are_used_up_the_run_ends(tmp_path: Path) -> None:
    run = await kit(tmp_path, *[answer(n=n) for n in range(9)], settings=meaning("exact", exact={"/n": True})).run("go")
    assert run.result.subtype == "error_max_structured_output_retries" and len(run.requests) == 3
    assert "within 2 retries" in run.result.errors[0] and "final_generation" in run.result.errors[0]  # type: ignore[index]


class Save(Tool):
    name = "Save"
    description = "Saves."
    input_schema = {"type": "object"}
    permission = "free"

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content="saved")


async def test_what_was_done_before_a_hook_sent_the_run_on_still_counts(tmp_path: Path) -> None:
    asked: list[int] = []

    def stop(event: Any) -> Any:
        asked.append(1)
        return StopResult(decision="block", reason="check it") if len(asked) == 1 else None

    run = await kit(
        tmp_path,
        call("Save"),
        text("I will hand it in"),
        answer(n=1, saved=True),
        answer(n=2, saved=True),
        settings=meaning("side_effect", sideEffects={"/saved": "Save"}),
        tools=[Save()],
        hooks={"h": module(stop=stop)},
    ).run("go")
    assert run.result.structured_output == {"n": 2, "saved": True} and len(run.requests) == 4


async def test_a_plain_answer_is_checked_where_that_is_asked_for(tmp_path: Path) -> None:
    settings = {"kernel": {"structuredOutput": {"validators": ["format"], "format": {"noMarkup": True}, "plainAnswers": True}}}
    made = Kit(
        tmp_path, [text("# Title"), text("Title"), *[text("**x**")] * 4], installed=["structured-output"], settings=settings
    )
    run = await made.run("go")
    assert run.result.result == "Title" and "give it again" in json.dumps(run.requests[1]["messages"])
    again = await run.session.submit("more")
    assert again.subtype == "error_max_structured_output_retries" and len(run.requests) == 5


class Meddling:
    name = "meddling"
    uses_model = False

    async def validate(self, value: Any, text: str, session: Any) -> list[OutputProblem]:
        value["n"] = 99
        return "no list"  # type: ignore[return-value]


async def test_a_validator_cannot_change_the_value_and_what_it_returns_is_looked_at(tmp_path: Path) -> None:
    hooks = {"mine": module(register_validators=lambda register: register(Meddling()))}
    made = kit(tmp_path, answer(n=1), settings=meaning("meddling"), hooks=hooks)
    run = await made.run("go")
    assert run.result.structured_output == {"n": 1} and any("expected a list" in a for a in made.harness.announced)


@pytest.mark.parametrize("older", [False, True])
async def test_an_open_task_sends_the_answer_back_and_a_completed_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, older: bool
) -> None:
    """Through both plugins: tools-tasks keeps the list, ``completion`` asks it."""
    if older:
        monkeypatch.setenv("CLAUDE_CODE_ENABLE_TASKS", "0")
        entry = {"content": "paint the gate", "activeForm": "Painting"}
        begin = call("TodoWrite", todos=[{**entry, "status": "in_progress"}])
        end = call("TodoWrite", todos=[{**entry, "status": "completed"}])
    else:
        begin = call("TaskCreate", subject="paint the gate", description="green")
        end = call("TaskUpdate", taskId="1", status="completed")
    made = kit(tmp_path, begin, answer(n=1), end, answer(n=2), settings=meaning("completion"), plugins=["tools-tasks"])
    run = await made.run("go")
    assert run.result.structured_output == {"n": 2}
    assert "paint the gate" in said(run, 2) and '"retry_scope":"tool_loop"' in said(run, 2)


async def test_completion_without_a_list_of_tasks_is_announced(tmp_path: Path) -> None:
    made = kit(tmp_path, answer(n=1), settings=meaning("completion"))
    assert (await made.run("go")).result.structured_output == {"n": 1}
    assert any("'completion' did not work" in a and "no plugin here keeps a list" in a for a in made.harness.announced)


@pytest.mark.parametrize(("thinking", "forced"), [(None, True), (2_000, False)])
async def test_only_the_last_try_is_forced_and_not_where_the_model_thinks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thinking: int | None, forced: bool
) -> None:
    monkeypatch.setenv("MAX_STRUCTURED_OUTPUT_RETRIES", "2")
    made = kit(tmp_path, text("a"), answer(n="b"), answer(n=1), text("c"), answer(n=2), max_thinking_tokens=thinking)
    choices: list[Any] = []
    stream = made.model.stream
    made.model.stream = lambda request: (choices.append(request.tool_choice), stream(request))[1]
    run = await made.run("go")
    plain = run.session.call_model
    assert run.result.structured_output == {"n": 1}
    assert (await run.session.submit("again")).structured_output == {"n": 2}
    assert choices == [None, None, {"type": "tool", "name": "StructuredOutput"} if forced else None, None, None]
    assert run.session.call_model is plain
