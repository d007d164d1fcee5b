"""Runs that must end with a value, through the real loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernel import OutputProblem, StopResult, UsageError
from kernel.testing import Kit, Run, call, module, text

pytestmark = pytest.mark.anyio

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "saved": {"type": "boolean"}},
    "required": ["n"],
    "additionalProperties": False,
}
NAME = "StructuredOutput"


def kit(
    path: Path, *turns: Any, schema: Any = SCHEMA, settings: Any = None, hooks: Any = None, tools: Any = (), plugins: Any = (),
    **options: Any,
) -> Kit:
    return Kit(
        path,
        turns,
        installed=["structured-output", *plugins],
        settings=settings,
        hooks=hooks or {},
        tools=tools,
        extra={"json_schema": schema if isinstance(schema, str) else json.dumps(schema)},
        **options,
    )


def answer(**value: Any) -> Any:
    return call(NAME, **value)


def said(run: Run, number: int = 1) -> str:
    return str(run.result_of(f"call_{number}")["content"])


async def test_the_value_ends_the_run_without_another_request(tmp_path: Path) -> None:
    run = await kit(tmp_path, answer(n=1)).run("go")
    assert run.result.structured_output == {"n": 1} and run.result.subtype == "success" and len(run.requests) == 1
    (tool,) = run.requests[0]["tools"]
    assert tool["name"] == NAME and tool["input_schema"]["properties"] == SCHEMA["properties"]


async def test_no_hook_and_no_rule_stands_before_it(tmp_path: Path) -> None:
    def never(event: Any) -> None:
        raise AssertionError("the harness's own means to hear the model")

    run = await kit(tmp_path, answer(n=1), hooks={"h": module(pre_tool_use=never, post_tool_use=never)}).run("go")
    assert run.result.structured_output == {"n": 1} and run.result.permission_denials == []


async def test_a_value_that_does_not_fit_is_answered_with_its_problems_alone(tmp_path: Path) -> None:
    run = await kit(tmp_path, answer(n="x"), answer(n=2)).run("go")
    first = json.loads(said(run).splitlines()[0])
    assert (first["path"], first["rule"], first["expected"], first["received"]) == ("/n", "type", "integer", '"x"')
    assert (first["attempt"], first["max_attempts"], first["retry_scope"]) == (1, 5, "final_generation")
    assert run.result.structured_output == {"n": 2}


async def test_the_same_wrong_value_twice_gets_an_example(tmp_path: Path) -> None:
    run = await kit(tmp_path, answer(n="x"), answer(n="x"), answer(n=1)).run("go")
    assert "same value" not in said(run, 1) and '{"n": 0}' in said(run, 2)


@pytest.mark.parametrize(("limit", "tries"), [(None, 6), ("0", 1), ("2", 3)])
async def test_tries_have_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str | None, tries: int) -> None:
    if limit is not None:
        monkeypatch.setenv("MAX_STRUCTURED_OUTPUT_RETRIES", limit)
    run = await kit(tmp_path, *[answer(n=f"x{i}") for i in range(10)]).run("go")
    assert (run.result.subtype, run.result.terminal_reason) == (
        "error_max_structured_output_retries",
        "structured_output_retry_exhausted",
    )
    assert run.result.is_error and len(run.requests) == tries and "/n: type" in run.result.errors[0]  # type: ignore[index]
    assert "structured_output" not in json.loads(json.dumps({"x": str(run.result.structured_output)}))


async def test_an_answer_without_the_call_is_asked_for_it(tmp_path: Path) -> None:
    run = await kit(tmp_path, text("It is one."), answer(n=1)).run("go")
    assert run.result.structured_output == {"n": 1}
    assert "Call the tool StructuredOutput once" in json.dumps(run.requests[1]["messages"])
    run = await kit(tmp_path, *[text("It is one.")] * 10).run("go")
    assert run.result.terminal_reason == "structured_output_retry_exhausted" and len(run.requests) == 6


async def test_of_two_values_in_one_response_the_last_counts(tmp_path: Path) -> None:
    run = await kit(tmp_path, [answer(n=1), answer(n=2)]).run("go")
    assert run.result.structured_output == {"n": 2}


async def test_every_run_of_a_session_needs_its_own(tmp_path: Path) -> None:
    made = kit(tmp_path, answer(n=1), text("no"), answer(n=2))
    run = await made.run("go")
    second = await run.session.submit("again")
    assert run.result.structured_output == {"n": 1} and second.structured_output == {"n": 2}


async def test_a_stop_hook_reopens_the_run_and_the_value_is_gone(tmp_path: Path) -> None:
    said_no: list[bool] = []

    def stop(event: Any) -> StopResult | None:
        said_no.append(event.stop_hook_active)
        return StopResult(decision="block", reason="check the sum") if len(said_no) == 1 else None

    run = await kit(tmp_path, answer(n=1), answer(n=3), hooks={"h": module(stop=stop)}).run("go")
    assert run.result.structured_output == {"n": 3} and "check the sum" in json.dumps(run.requests[1]["messages"])


async def test_a_success_without_the_value_does_not_exist(tmp_path: Path) -> None:
    hook = module(stop=lambda event: StopResult(continue_=False, stop_reason="enough"))
    run = await kit(tmp_path, answer(n=1), hooks={"h": hook}).run("go")
    assert run.result.structured_output == {"n": 1}  # accepted before the hook ended the run
    run = await kit(
        tmp_path,
        text("x"),
        hooks={
            "h": module(
                user_prompt_submit=lambda event: __import__("kernel").UserPromptSubmitResult(decision="block", reason="not now")
            )
        },
    ).run("go")
    assert run.result.subtype == "error_during_execution" and "not now" in run.result.errors[0]  # type: ignore[index]


async def test_a_root_that_is_no_object_is_wrapped_and_unwrapped(tmp_path: Path) -> None:
    run = await kit(
        tmp_path, answer(value=[1, "x"]), answer(value=[1, 2]), schema={"type": "array", "items": {"type": "integer"}}
    ).run("go")
    assert run.result.structured_output == [1, 2] and json.loads(said(run).splitlines()[0])["path"] == "/1"
    assert run.requests[0]["tools"][0]["input_schema"]["required"] == ["value"]


async def test_references_to_defs_work(tmp_path: Path) -> None:
    schema = {
        "$defs": {"item": {"type": "object", "properties": {"p": {"type": "number"}}, "required": ["p"]}},
        "type": "object",
        "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
        "required": ["items"],
    }
    run = await kit(tmp_path, answer(items=[{"p": "12 EUR"}]), answer(items=[{"p": 12}]), schema=schema).run("go")
    assert json.loads(said(run).splitlines()[0])["path"] == "/items/0/p" and run.result.structured_output == {
        "items": [{"p": 12}]
    }


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("{nope", "--json-schema is not valid JSON"),
        ("[1]", "--json-schema must be a JSON object"),
        ('{"type": "objekt"}', "--json-schema is not a valid JSON Schema: type"),
        ('{"$schema": "https://json-schema.org/draft/2020-12/schema"}', "not a valid JSON Schema: $schema"),
        ('{"properties": {"a": {"$ref": "https://x.example/y"}}}', "$ref 'https://x.example/y' does not lead"),
        ('{"properties": {"a": {"$ref": "#/definitions/none"}}}', "does not lead to a place"),
        ('{"properties": {"a": {"pattern": "(?<n>"}}}', "pattern '(?<n>' cannot be used"),
        ('{"items": ' * 70 + "{}" + "}" * 70, "schema too large"),
        ("[" * 100_000, "is not valid JSON"),
        (json.dumps({"enum": ["x" * 300_000]}), "schema too large"),
        (json.dumps({"properties": {str(n): {} for n in range(6_000)}}), "schema too large"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_before_anything_begins(tmp_path: Path, schema: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        kit(tmp_path, schema=schema).open()
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"d": {"type": "string", "format": "date"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"$schema": "http://json-schema.org/draft-06/schema#", "type": "object"},
        {"type": "object", "unevaluatedProperties": False},
        {"definitions": {"t": {"properties": {"next": {"$ref": "#/definitions/t"}}}}, "$ref": "#/definitions/t"},
        {},
    ],
)
def test_what_the_contract_accepts_is_accepted(tmp_path: Path, schema: Any) -> None:
    kit(tmp_path, schema=schema).open()


# -- meaning -------------------------------------------------------------------------------------------------------------
def meaning(*validators: str, **more: Any) -> dict[str, Any]:
    return {"kernel": {"structuredOutput": {"validators": list(validators), **more}}}


async def test_a_fixed_value_must_stand_where_it_belongs(tmp_path: Path) -> None:
    run = await kit(tmp_path, answer(n=1), answer(n=7), settings=meaning("exact", exact={"/n": 7})).run("go")
    assert run.result.structured_output == {"n": 7} and '"rule":"exact"' in said(run)


async def test_a_side_effect_that_is_claimed_was_done_in_this_run(tmp_path: Path) -> None:
    from kernel import Tool, ToolContext, ToolResult

    class Save(Tool):
        name = "Save"
        description = "Saves."
        input_schema = {"type": "object", "properties": {"fail": {"type": "boolean"}}}
        permission = "free"

        async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
            return (
                ToolResult(content="no", status="fatal_error", error_code="x")
                if input.get("fail")
                else ToolResult(content="saved")
            )

    settings = meaning("side_effect", sideEffects={"/saved": "Save"})
    made = kit(
        tmp_path,
        call("Save", fail=True),
        answer(n=1, saved=True),
        call("Save"),
        answer(n=1, saved=True),
        answer(n=1, saved=True),
        answer(n=1, saved=False),
        settings=settings,
        tools=[Save()],
    )
    run = await made.run("go")
    assert '"retry_scope":"tool_loop"' in said(run, 2) and run.result.structured_output == {"n": 1, "saved": True}
    second = await run.session.submit("again")  # what an earlier run did proves nothing
    assert second.structured_output == {"n": 1, "saved": False}


async def test_what_is_missing_three_times_asks_for_another_plan(tmp_path: Path) -> None:
    settings = meaning("side_effect", sideEffects={"/saved": "Save"})
    run = await kit(tmp_path, *[answer(n=n, saved=True) for n in range(3)], answer(n=9), settings=settings).run("go")
    assert "Plan anew" in said(run, 3) and "Plan anew" not in said(run, 2)


async def test_when_tries_run_out_a_team_may_take_it_with_warnings(tmp_path: Path) -> None:
    settings = meaning("exact", exact={"/n": 7}, onExhausted="accept_with_warnings")
    run = await kit(tmp_path, *[answer(n=n) for n in range(3)], settings=settings).run("go")
    assert run.result.structured_output == {"n": 2} and len(run.requests) == 3


class Broken:
    name = "broken"
    uses_model = False

    async def validate(self, value: Any, text: str, session: Any) -> list[OutputProblem]:
        raise RuntimeError("no network")


async def test_a_validator_that_breaks_is_skipped_and_said(tmp_path: Path) -> None:
    made = kit(
        tmp_path,
        answer(n=1),
        settings=meaning("broken", "missing"),
        hooks={"mine": module(register_validators=lambda register: register(Broken()))},
    )
    run = await made.run("go")
    assert run.result.structured_output == {"n": 1}
    assert any("'broken' did not work" in a and "no network" in a for a in made.harness.announced)
    assert any("there is no validator 'missing'" in a for a in made.harness.announced)


@pytest.mark.parametrize(
    ("wanted", "value", "rule"), [({"maxLength": 3}, "long", "maxLength"), ({"noMarkup": True}, "# x", "noMarkup")]
)
async def test_the_form_of_texts(tmp_path: Path, wanted: Any, value: str, rule: str) -> None:
    schema = {"type": "object", "properties": {"t": {"type": "string"}}}
    run = await kit(tmp_path, answer(t=value), answer(t="ok"), schema=schema, settings=meaning("format", format=wanted)).run("go")
    assert f'"rule":"{rule}"' in said(run) and run.result.structured_output == {"t": "ok"}


async def test_a_program_changes_the_schema_between_two_prompts(tmp_path: Path) -> None:
    made = kit(tmp_path, answer(n=1), text("plain"), answer(n=1), answer(other="x"))
    session = made.open()
    other = {"type": "object", "properties": {"other": {"type": "string"}}, "required": ["other"]}
    for schema, value in ((session.options.extra["json_schema"], {"n": 1}), (None, None), (other, {"other": "x"})):
        session.options.extra["json_schema"] = schema
        run = await made.run("go", session)
        assert (run.result.structured_output if value else run.result.result) == (value or "plain")
    assert [any(tool["name"] == NAME for tool in request["tools"]) for request in run.requests] == [True, False, True, True]
    assert "other" in said(run, 2)
