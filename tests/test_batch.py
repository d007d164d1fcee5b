"""The gates that every tool call passes, in order, and the one result that it gets (loop contract, section 6)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kernel import ToolContext, ToolError, ToolResult
from kernel.events import PostToolBatchResult, PostToolUseFailureResult, PostToolUseResult, PreToolUseResult
from kernel.middleware import Middleware
from kernel.output import SystemMessage, ToolProgress, UserMessage
from kernel.testing import FakeClock, Kit, Run, call, module, text
from kernel.tools import error_result, result_of

pytestmark = pytest.mark.anyio


def content(run: Run, id: str = "call_1") -> str:
    found = run.result_of(id)["content"]
    assert isinstance(found, str)
    return found


def user_message(run: Run) -> list[dict[str, Any]]:
    """What answered the first batch, as the model saw it."""
    found: list[dict[str, Any]] = run.requests[1]["messages"][2]["content"]
    return found


def fails(code: str = "not_found", **more: Any) -> Any:
    def raise_it(*_: Any) -> None:
        raise ToolError(code, "no such thing", **more)
    return raise_it


def crashes(*_: Any) -> None:
    raise RuntimeError("boom")


# -- the order of the gates -----------------------------------------------------------------------------------------------
PRE, POST, FAILED, BATCH = "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch"

GATES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a call that is allowed": ({}, [PRE, "policy", "tool", POST, BATCH]),
    "a tool that fails": ({"tool": {"run": fails()}}, [PRE, "policy", "tool", FAILED, BATCH]),
    "a tool that crashes": ({"tool": {"run": crashes}}, [PRE, "policy", "tool", FAILED, BATCH]),
    "a tool that does not exist": ({"call": call("Nothing")}, [BATCH]),
    "an input that does not fit the schema": ({"call": call("Probe", n="x")}, [BATCH]),
    "an input that does not parse": ({"call": {**call("Probe"), "raw_input": "{"}}, [BATCH]),
    "an input that the tool refuses": ({"tool": {"validate_input": fails("bad_path")}}, [BATCH]),
    "a check that crashes": ({"tool": {"prepare_input": crashes}}, [BATCH]),
    "a hook that denies": ({"pre": PreToolUseResult(permission_decision="deny")}, [PRE, BATCH]),
    "a hook that allows": ({"pre": PreToolUseResult(permission_decision="allow"), "policy": "ask"},
                           [PRE, "policy", "tool", POST, BATCH]),
    "a rule that denies": ({"policy": "deny"}, [PRE, "policy", BATCH]),
    "a rule that denies what a hook allows": ({"policy": "deny", "pre": PreToolUseResult(permission_decision="allow")},
                                              [PRE, "policy", BATCH]),
    "a question that nobody can answer": ({"policy": "ask"}, [PRE, "policy", "PermissionRequest", BATCH]),
    "a question of a hook": ({"pre": PreToolUseResult(permission_decision="ask")}, [PRE, "policy", "PermissionRequest", BATCH]),
    "a question that is answered": ({"policy": "ask", "asker": {"behavior": "allow"}},
                                    [PRE, "policy", "PermissionRequest", "asker", "tool", POST, BATCH]),
    "a question where none may be asked": ({"policy": "ask", "options": {"permission_mode": "dontAsk"}}, [PRE, "policy", BATCH]),
    "a rewrite that does not fit": ({"pre": PreToolUseResult(updated_input={"n": "x"})}, [PRE, BATCH]),
}


@pytest.mark.parametrize("name", GATES)
async def test_a_call_meets_the_gates_in_order_up_to_the_one_that_stops_it(name: str, tmp_path: Path, probe: Any) -> None:
    case, golden = GATES[name]
    seen: list[str] = []

    def policy(tool: str, input: dict[str, Any]) -> str:
        seen.append("policy")
        return str(case.get("policy", "allow"))

    run_tool = case.get("tool", {}).get("run")

    def run(input: Any, context: Any) -> Any:
        seen.append("tool")
        return run_tool(input, context) if run_tool else "ok"

    async def asker(*_: Any) -> Any:
        seen.append("asker")
        return case["asker"]

    def hears(event: Any, answer: Any = None) -> Any:
        seen.append(event.event_name)
        return answer

    hooks = module(pre_tool_use=lambda event: hears(event, case.get("pre")), permission_request=lambda event: hears(event),
                   post_tool_use=lambda event: hears(event), post_tool_use_failure=lambda event: hears(event),
                   post_tool_batch=lambda event: hears(event), permission_denied=lambda event: hears(event))
    kit = Kit(tmp_path, [case.get("call", call("Probe")), text("done")], hooks={"spy": hooks}, policy=policy,
              tools=[probe(**{**case.get("tool", {}), "run": run})], **case.get("options", {}))
    session = kit.open()
    session.asker = asker if "asker" in case else None
    outcome = await kit.run("go", session)
    assert [s for n, s in enumerate(seen) if n == 0 or seen[n - 1] != s] == golden
    block = outcome.result_of("call_1")
    assert block.get("is_error", False) == (POST not in golden)
    assert outcome.result.terminal_reason == "completed"


# -- what is no tool, what is no input ------------------------------------------------------------------------------------
async def test_an_unknown_tool_is_answered_with_near_names(tmp_path: Path, probe: Any) -> None:
    tools = [probe(n) for n in ("Read", "Write", "Bash")]
    run = await Kit(tmp_path, [[call("Raed"), call("Zzz"), call("")], text("done")], tools=tools).run("go")
    assert content(run) == "<tool_use_error>unknown_tool: No such tool: 'Raed'. Did you mean Read?</tool_use_error>"
    assert "The tools are: Read, Write, Bash." in content(run, "call_2")
    assert run.result_of("call_3")["is_error"]


async def test_an_old_name_works_and_hooks_see_the_new_one(tmp_path: Path, probe: Any) -> None:
    seen: list[str] = []
    hooks = module(pre_tool_use=lambda event: seen.append(event.tool_name))
    run = await Kit(tmp_path, [call("Old"), text("done")], tools=[probe("New", aliases=("Old",))], hooks={"h": hooks}).run("go")
    assert content(run) == "ran {}" and seen == ["New"]


SCHEMA = {"type": "object", "required": ["path"], "additionalProperties": False, "properties": {
    "path": {"type": "string"}, "n": {"type": "integer", "minimum": 1}, "x": {"type": "number"}, "flag": {"type": "boolean"},
    "mode": {"enum": ["a", "b"]}, "both": {"type": ["string", "integer"]},
    "list": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}}, "map": {"type": "object"}}}


@pytest.mark.parametrize(("input", "says"), [
    ({}, ["path: required, but missing"]),
    ({"path": 5}, ["path: expected string, received int 5"]),
    ({"path": "p", "n": "many"}, ["n: expected integer", 'received str "many"']),
    ({"path": "p", "n": 0}, ["n: 0 is less than the minimum of 1, received int 0"]),
    ({"path": "p", "n": 1.5}, ["n: expected integer", "received float 1.5"]),
    ({"path": "p", "mode": "c"}, ["mode: expected ['a', 'b']", 'received str "c"']),
    ({"path": "p", "list": [{"id": 1}, {"id": "x"}]}, ["list.1.id: expected integer", 'received str "x"']),
    ({"path": "p", "pth": 1}, ["pth: unknown key; known: path, n, x"]),
    ({"n": "x", "flag": "maybe"}, ["path: required", "flag: expected boolean", "n: expected integer"]),
    ({"path": None}, ["path: expected string, received NoneType null"]),
])
async def test_an_input_fault_names_path_expectation_and_what_came(
        input: dict[str, Any], says: list[str], tmp_path: Path, probe: Any) -> None:
    tool = probe(input_schema=SCHEMA)
    run = await Kit(tmp_path, [call("Probe", **input), text("done")], tools=[tool]).run("go")
    assert content(run).startswith("<tool_use_error>invalid_arguments: ") and content(run).endswith("</tool_use_error>")
    assert [s for s in says if s not in content(run)] == []
    assert tool.ran == []


@pytest.mark.parametrize(("given", "taken"), [
    ({"n": "3"}, {"n": 3}), ({"x": "3"}, {"x": 3}), ({"x": " 2.5 "}, {"x": 2.5}), ({"flag": "true"}, {"flag": True}),
    ({"flag": "False"}, {"flag": False}), ({"n": None}, {}), ({"list": '[{"id": 1}]'}, {"list": [{"id": 1}]}),
    ({"map": '{"a": 1}'}, {"map": {"a": 1}}), ({"path": "7"}, {"path": "7"}), ({"path": "true"}, {"path": "true"}),
    ({"both": "7"}, {"both": "7"}),
])
async def test_the_documented_leniencies(given: dict[str, Any], taken: dict[str, Any], tmp_path: Path, probe: Any) -> None:
    given, taken = {"path": "p", **given}, {"path": "p", **taken}
    tool = probe(input_schema=SCHEMA)
    await Kit(tmp_path, [call("Probe", **given), text("done")], tools=[tool]).run("go")
    assert tool.ran == [taken]
    assert [type(v) for v in tool.ran[0].values()] == [type(v) for v in taken.values()]


async def test_a_misspelt_key_is_put_right_before_the_schema_and_prepared_before_the_hooks(tmp_path: Path, probe: Any) -> None:
    seen: list[Any] = []
    tool = probe(input_schema=SCHEMA, repair_input=lambda input: {"path": input["file"]},
                 prepare_input=lambda input, context: {"path": f"{context.cwd}/{input['path']}"})
    hooks = module(pre_tool_use=lambda event: seen.append(event.tool_input))
    await Kit(tmp_path, [call("Probe", file="a"), text("done")], tools=[tool], hooks={"h": hooks}).run("go")
    assert seen == tool.ran == [{"path": f"{tmp_path}/a"}]


# -- what hooks change --------------------------------------------------------------------------------------------------------
async def test_a_rewritten_input_is_the_one_that_rules_meet_and_that_is_run_and_reported(tmp_path: Path, probe: Any) -> None:
    seen: list[Any] = []
    hooks = module(pre_tool_use=lambda event: PreToolUseResult(updated_input={"n": "7"}),
                   post_tool_use=lambda event: seen.append(event.tool_input))
    kit = Kit(tmp_path, [call("Probe", n=1, text="x"), text("done")], tools=[tool := probe()], hooks={"h": hooks})
    await kit.run("go")
    assert tool.ran == seen == [kit.policy.calls[0].input] == [{"n": 7}]
    assert kit.policy.calls[0].hook_rewrote


@pytest.mark.parametrize("value", [{"n": "many"}, {"n": []}])
async def test_a_rewrite_that_does_not_fit_is_an_error_and_nothing_runs(value: Any, tmp_path: Path, probe: Any) -> None:
    hooks = module(pre_tool_use=lambda event: PreToolUseResult(permission_decision="allow", updated_input=value))
    run = await Kit(tmp_path, [call("Probe", n=1), text("done")], tools=[tool := probe()], hooks={"h": hooks}).run("go")
    assert "invalid_arguments: n: expected integer" in content(run) and tool.ran == []


async def test_a_rewritten_output_is_what_the_model_sees(tmp_path: Path, probe: Any) -> None:
    hooks = module(post_tool_use=lambda event: PostToolUseResult(updated_tool_output={"out": event.tool_response["out"].upper()}))
    kit = Kit(tmp_path, [call("Probe"), text("done")], tools=[probe(run=lambda *_: "quiet")], hooks={"h": hooks})
    run = await kit.run("go")
    assert json.loads(content(run)) == {"out": "QUIET"}
    shown = [m for m in kit.outputs if isinstance(m, UserMessage)]
    assert shown[0].tool_use_result == {"out": "QUIET"}


@pytest.mark.parametrize(("value", "fits"), [({"out": "x"}, True), ({"out": 1}, False), ("text", False), ({}, False)])
async def test_a_rewritten_output_must_fit_the_tools_shape(value: Any, fits: bool, tmp_path: Path, probe: Any) -> None:
    shape = {"type": "object", "required": ["out"], "properties": {"out": {"type": "string"}}}
    hooks = module(post_tool_use=lambda event: PostToolUseResult(updated_tool_output=value))
    run = await Kit(tmp_path, [call("Probe"), text("done")], tools=[probe(run=lambda *_: "own", output_schema=shape)],
                    hooks={"h": hooks}).run("go")
    assert (content(run) == "own") != fits
    assert any("updatedToolOutput of h does not fit" in n for n in run.notices()) != fits


async def test_an_output_that_the_tool_cannot_show_is_left_as_it_was(tmp_path: Path, probe: Any) -> None:
    hooks = module(post_tool_use=lambda event: PostToolUseResult(updated_tool_output={"strange": 1}))
    tool = probe(run=lambda *_: "own", from_structured=lambda structured: structured["missing"])
    run = await Kit(tmp_path, [call("Probe"), text("done")], tools=[tool], hooks={"h": hooks}).run("go")
    assert content(run) == "own"
    assert any("KeyError" in n for n in run.notices())


async def test_what_hooks_say_stands_behind_all_results_and_only_in_the_next_request(tmp_path: Path, probe: Any) -> None:
    good = PostToolUseResult(decision="block", reason="look again", additional_context="post")
    bad = PostToolUseFailureResult(decision="block", reason="fix", additional_context="failed")
    hooks = module(pre_tool_use=lambda event: PreToolUseResult(additional_context=f"pre {event.tool_use_id}"),
                   post_tool_use=lambda event: good, post_tool_use_failure=lambda event: bad,
                   post_tool_batch=lambda event: PostToolBatchResult(additional_context="batch"))
    tools = [probe(), probe("Bad", fails())]
    run = await Kit(tmp_path, [[call("Probe"), call("Bad")], text("done")], tools=tools, hooks={"h": hooks}).run("go")
    blocks = user_message(run)
    assert [b["type"] for b in blocks] == ["tool_result"] * 2 + ["text"] * 7
    assert [b["tool_use_id"] for b in blocks[:2]] == ["call_1", "call_2"]
    said = [b["text"].removeprefix("<system-reminder>\n").removesuffix("\n</system-reminder>") for b in blocks[2:]]
    assert said == ["PreToolUse:Probe hook additional context: pre call_1", "PostToolUse:Probe hook additional context: post",
                    "PostToolUse:Probe hook feedback: look again", "PreToolUse:Bad hook additional context: pre call_2",
                    "PostToolUseFailure:Bad hook additional context: failed", "PostToolUseFailure:Bad hook feedback: fix",
                    "PostToolBatch hook additional context: batch"]
    assert "additional context" not in json.dumps(run.requests[0])


async def test_the_batch_event_holds_what_the_model_sees_of_every_call(tmp_path: Path, probe: Any) -> None:
    seen: list[Any] = []
    hooks = module(post_tool_batch=lambda event: seen.append(event.tool_calls))
    await Kit(tmp_path, [[call("Probe", n=1), call("Nothing", x=2)], text("done")], tools=[probe(run=lambda *_: "out")],
              hooks={"h": hooks}).run("go")
    (calls,) = seen
    assert calls[0] == {"tool_name": "Probe", "tool_input": {"n": 1}, "tool_use_id": "call_1", "tool_response": "out"}
    assert calls[1]["tool_use_id"] == "call_2" and "unknown_tool" in calls[1]["tool_response"]


# -- results ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("run", "failed"), [
    (lambda *_: ToolResult(content="fine"), False), (lambda *_: ToolResult(content="none", status="empty"), False),
    (lambda *_: ToolResult(content="half", status="partial"), False), (fails("timeout", retryable=True), True),
    (fails("git.merge_conflict"), True), (lambda *_: ToolResult(content="no", status="blocked", error_code="x"), True),
    (crashes, True), (lambda *_: sys.exit(2), True), (lambda *_: None, True), (lambda *_: {"a": 1}, True)])
async def test_a_result_says_whether_it_failed(run: Any, failed: bool, tmp_path: Path, probe: Any) -> None:
    seen: list[str] = []
    hooks = module(post_tool_use=lambda event: seen.append("good"), post_tool_use_failure=lambda event: seen.append("bad"))
    outcome = await Kit(tmp_path, [call("Probe"), text("done")], tools=[probe(run=run)], hooks={"h": hooks}).run("go")
    assert outcome.result_of("call_1").get("is_error", False) == failed
    assert seen == ["bad" if failed else "good"]


@pytest.mark.parametrize("retryable", [True, False])
def test_an_expected_failure_becomes_a_result_of_its_class(retryable: bool) -> None:
    result = result_of(ToolError("git.merge_conflict", "no", retryable=retryable, structured={"files": 2}))
    assert (result.status, result.retryable) == ("retryable_error" if retryable else "fatal_error", retryable)
    assert (result.error_code, result.content, result.structured) == ("git.merge_conflict", "no", {"files": 2})
    for status in ("retryable_error", "fatal_error", "blocked", "cancelled"):
        made = error_result("code", "text", status=status)
        assert made.failed and made.error_code == "code" and made.retryable == (status == "retryable_error")


async def test_a_crash_is_told_without_a_traceback(tmp_path: Path, probe: Any) -> None:
    run = await Kit(tmp_path, [call("Probe"), text("done")], tools=[probe(run=crashes)]).run("go")
    assert content(run) == "Probe failed: RuntimeError: boom"


@pytest.mark.parametrize("value", ["", []])
async def test_an_empty_result_becomes_a_short_text(value: Any, tmp_path: Path, probe: Any) -> None:
    run = await Kit(tmp_path, [call("Probe"), text("done")], tools=[probe(run=lambda *_: ToolResult(content=value))]).run("go")
    assert content(run) == "(no output)"


@pytest.mark.parametrize(("length", "spilled"), [(999, False), (1000, False), (1001, True), (200_000, True)])
async def test_a_long_result_goes_to_a_file_above_the_tools_limit(length: int, spilled: bool, tmp_path: Path, probe: Any) -> None:
    whole = "ab" * (length // 2) + "c" * (length % 2)
    run = await Kit(tmp_path, [call("Probe"), text("done")], tools=[probe(run=lambda *_: whole, max_result_chars=1000)]).run("go")
    shown = content(run)
    assert (shown == whole) != spilled
    if spilled:
        assert shown.startswith(whole[:500]) and f"{length} characters in all" in shown
        path = Path(shown.rsplit("the whole output is in ", 1)[1].rstrip(")"))
        assert path.read_text() == whole
        assert path.stat().st_mode & 0o777 == 0o600


async def test_a_long_result_that_cannot_be_kept_is_cut_and_the_run_goes_on(
        tmp_path: Path, probe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kit = Kit(tmp_path, [call("Probe"), text("done")], tools=[probe(run=lambda *_: "x" * 2000, max_result_chars=1000)])
    session = kit.open()

    def full(name: str, text: str) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(session, "spill", full)
    run = await kit.run("go", session)
    assert content(run).startswith("x" * 500) and "No space left on device" in content(run)
    assert run.result.terminal_reason == "completed"


async def test_more_messages_of_a_tool_follow_the_results(tmp_path: Path, probe: Any) -> None:
    more = ToolResult(content="see below", new_messages=({"type": "text", "text": "below"},))
    run = await Kit(tmp_path, [[call("Probe"), call("Probe")], text("done")], tools=[probe(run=lambda *_: more)]).run("go")
    assert [b.get("text", b["type"]) for b in user_message(run)] == ["tool_result", "tool_result", "below", "below"]


async def test_the_time_of_a_call_is_that_of_the_tool_alone(tmp_path: Path, probe: Any) -> None:
    clock, seen = FakeClock(), []

    async def runs(input: Any, context: ToolContext) -> str:
        await clock.sleep(2.0)
        return "ok"

    async def asker(*_: Any) -> dict[str, str]:
        await clock.sleep(50.0)
        return {"behavior": "allow"}

    hooks = module(post_tool_use=lambda event: seen.append(event.duration_ms))
    kit = Kit(tmp_path, [call("Probe"), text("done")], tools=[probe(run=runs)], hooks={"h": hooks}, clock=clock,
              policy=lambda *_: "ask")
    session = kit.open()
    session.asker = asker
    await kit.run("go", session)
    assert seen == [2000]


async def test_middleware_wraps_the_tool_first_outermost(tmp_path: Path, probe: Any) -> None:
    class Wrap(Middleware):
        def __init__(self, name: str) -> None:
            self.name = name

        async def around_tool(self, tool: Any, input: Any, context: Any, next: Any) -> ToolResult:
            inner = await next(tool, {**input, "text": input.get("text", "") + self.name}, context)
            return ToolResult(content=f"{self.name}({inner.content})")

    def bringing(name: str) -> Any:
        return module(register_middleware=lambda register: register(Wrap(name)))

    run = await Kit(tmp_path, [call("Probe"), text("done")], tools=[probe(run=lambda i, c: i["text"])],
                    hooks={name: bringing(name) for name in "bac"}).run("go")
    assert content(run) == "a(b(c(abc)))"


async def test_a_middleware_that_breaks_is_a_tool_that_breaks(tmp_path: Path, probe: Any) -> None:
    class Odd(Middleware):
        name = "odd"

        async def around_tool(self, tool: Any, input: Any, context: Any, next: Any) -> ToolResult:
            raise LookupError("odd")

    hooks = module(register_middleware=lambda register: register(Odd()))
    run = await Kit(tmp_path, [call("Probe"), text("done")], tools=[probe()], hooks={"h": hooks}).run("go")
    assert content(run) == "Probe failed: LookupError: odd"


async def test_progress_is_shown_with_the_calls_id(tmp_path: Path, probe: Any) -> None:
    kit = Kit(tmp_path, [call("Probe"), text("done")], tools=[probe(run=lambda i, c: c.progress(elapsed=1.5, lines=3) or "ok")])
    await kit.run("go")
    (message,) = [m for m in kit.outputs if isinstance(m, ToolProgress)]
    assert (message.tool_use_id, message.tool_name) == ("call_1", "Probe")
    assert (message.elapsed_time_seconds, message.data) == (1.5, {"lines": 3})


async def test_every_result_is_shown_and_recorded_once(tmp_path: Path, probe: Any) -> None:
    kit = Kit(tmp_path, [[call("Probe"), call("Nothing"), {**call("Probe"), "raw_input": "{"}], text("done")], tools=[probe()])
    session = kit.open()
    await kit.run("go", session)
    shown = [m for m in kit.outputs if isinstance(m, UserMessage)]
    assert sorted(m.message["content"][0]["tool_use_id"] for m in shown) == ["call_1", "call_2", "call_3"]
    recorded = [x for x in session.transcript.entries if "toolUseResult" in x.extra]  # type: ignore[attr-defined]
    assert [x.uuid for x in recorded] == [m.uuid for m in shown]
    assert not [m for m in kit.outputs if isinstance(m, SystemMessage) and m.subtype == "permission_denied"]


