"""One prompt in, exactly one result out: every way in which a turn ends (loop contract, sections 1, 3 and 9)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernel.errors import ModelError
from kernel.events import UserPromptSubmitResult
from kernel.messages import normalise
from kernel.models import Prices
from kernel.output import AssistantMessage, ResultMessage, SystemMessage, UserMessage, encode_output
from kernel.session import Session
from kernel.testing import FakeClock, Kit, Run, ScriptedModel, Turn, call, module, text

pytestmark = pytest.mark.anyio

GO_ON, SPLIT = "Go on exactly where it stopped", "Split it into smaller calls"


def prompts(run: Run, request: int = -1) -> list[str]:
    """All text that the model saw from the user's side in that request."""
    said = [m["content"] for m in run.requests[request]["messages"] if m["role"] == "user"]
    return [b["text"] for content in said for b in content if b["type"] == "text"]


def check(kit: Kit, session: Session, results: int = 1) -> None:
    """What holds after every turn: one result each, as documented, and a history that the API accepts."""
    found = [m for m in kit.outputs if isinstance(m, ResultMessage)]
    assert len(found) == results and kit.outputs[-1] is found[-1]
    for message in found:
        wire = json.loads(encode_output(message))
        assert wire["type"] == "result" and wire["session_id"] == session.id
        assert set(wire) >= {"uuid", "subtype", "is_error", "duration_ms", "duration_api_ms", "num_turns", "stop_reason",
                             "total_cost_usd", "usage", "modelUsage", "permission_denials", "terminal_reason"}
        assert ("result" in wire) == (wire["subtype"] == "success")
        assert ("errors" in wire) == (wire["subtype"] != "success")
    history: Any = [(m["role"], m["content"]) for m in session.history.wire()]
    assert normalise(history) == (history, [])


async def turn(kit: Kit, prompt: str = "go") -> tuple[Run, Session]:
    session = kit.open()
    run = await kit.run(prompt, session)
    check(kit, session)
    return run, session


def ended(run: Run) -> tuple[str, bool, str, str | None]:
    result = run.result
    return result.subtype, result.is_error, result.terminal_reason, result.stop_reason


# -- stop reasons (section 3) ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("reason", ["end_turn", "stop_sequence", "brand_new_reason"])
async def test_an_answer_without_a_call_is_the_end(reason: str, tmp_path: Path) -> None:
    run, _ = await turn(Kit(tmp_path, [Turn(blocks=[text("Hello"), text(" you")], stop_reason=reason)]))
    assert ended(run) == ("success", False, "completed", reason)
    assert (run.result.result, run.result.num_turns, len(run.requests)) == ("Hello you", 1, 1)


async def test_calls_are_run_whatever_the_reason_says(tmp_path: Path, probe: Any) -> None:
    script: list[Any] = [Turn(blocks=[call("Probe")], stop_reason="end_turn"), text("done")]
    run, _ = await turn(Kit(tmp_path, script, tools=[tool := probe()]))
    assert tool.ran == [{}] and run.result.result == "done" and run.result.num_turns == 2


async def test_the_result_is_the_last_answer_alone(tmp_path: Path, probe: Any) -> None:
    run, _ = await turn(Kit(tmp_path, [[text("let me see"), call("Probe")], text("found it")], tools=[probe()]))
    assert run.result.result == "found it"


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
async def test_cut_text_is_continued_and_the_pieces_are_joined(reason: str, tmp_path: Path) -> None:
    pieces = [Turn(blocks=[text(t)], stop_reason=reason) for t in ("one ", "two ")]
    run, _ = await turn(Kit(tmp_path, [*pieces, text("three")]))
    assert ended(run) == ("success", False, "completed", "end_turn")
    assert run.result.result == "one two three"
    assert GO_ON in prompts(run, 1)[-1]


async def test_after_three_continuations_a_cut_answer_is_an_error(tmp_path: Path) -> None:
    run, _ = await turn(Kit(tmp_path, [Turn(blocks=[text(f"{n} ")], stop_reason="max_tokens") for n in range(9)]))
    assert ended(run) == ("success", True, "model_error", "max_tokens")
    assert len(run.requests) == 4 and run.result.result == "0 1 2 3 "


async def test_a_cut_call_is_not_run_and_the_model_is_told_to_split_it(tmp_path: Path, probe: Any) -> None:
    cut = Turn(blocks=[call("Probe", n=1), call("Probe", n=2)], stop_reason="max_tokens")
    run, session = await turn(Kit(tmp_path, [cut, text("done")], tools=[tool := probe()]))
    assert tool.ran == [{"n": 1}]
    assert SPLIT in prompts(run)[-1] and len(session.history.wire()[1]["content"]) == 1


async def test_calls_that_are_cut_again_and_again_end_the_run(tmp_path: Path, probe: Any) -> None:
    alone = [Turn(blocks=[call("Probe")], stop_reason="max_tokens")] * 9
    run, _ = await turn(Kit(tmp_path, alone, tools=[probe()]))
    assert ended(run) == ("success", True, "model_error", "max_tokens") and len(run.requests) == 4
    with_others = [Turn(blocks=[call("Probe"), call("Probe")], stop_reason="max_tokens")] * 9
    run, _ = await turn(Kit(tmp_path, with_others, tools=[probe()]))
    assert ended(run) == ("success", True, "model_error", "max_tokens") and len(run.requests) == 4


async def test_the_limit_of_continuations_holds_for_one_answer_and_not_for_the_run(tmp_path: Path, probe: Any) -> None:
    cut = [Turn(blocks=[text("x")], stop_reason="max_tokens")] * 3
    run, _ = await turn(Kit(tmp_path, [*cut, call("Probe"), *cut, text("y")], tools=[probe()]))
    assert ended(run)[2] == "completed" and run.result.result == "xxxy"


async def test_a_paused_answer_is_sent_back_as_it_is(tmp_path: Path) -> None:
    server = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    paused = Turn(blocks=[text("searching"), server], stop_reason="pause_turn")
    run, _ = await turn(Kit(tmp_path, [paused, [found, text("done")]]))
    assert [b["type"] for b in run.requests[1]["messages"][-1]["content"]] == ["text", "server_tool_use"]
    assert run.requests[1]["messages"][-1]["role"] == "assistant"
    assert run.result.result == "done"


async def test_five_pauses_in_a_row_are_allowed(tmp_path: Path, probe: Any) -> None:
    pause = Turn(blocks=[text("wait")], stop_reason="pause_turn")
    run, _ = await turn(Kit(tmp_path, [*[pause] * 5, text("done")]))
    assert ended(run)[2] == "completed"
    run, _ = await turn(Kit(tmp_path, [*[pause] * 5, call("Probe"), pause, text("done")], tools=[probe()]))
    assert ended(run)[2] == "completed"
    run, _ = await turn(Kit(tmp_path, [pause] * 9))
    assert ended(run) == ("error_during_execution", True, "model_error", "pause_turn") and len(run.requests) == 6


async def test_a_refusal_ends_the_turn_and_its_calls_are_answered_but_not_run(tmp_path: Path, probe: Any) -> None:
    kit = Kit(tmp_path, [Turn(blocks=[text("I "), call("Probe")], stop_reason="refusal"), text("fine")], tools=[tool := probe()])
    run, session = await turn(kit)
    assert ended(run) == ("success", True, "completed", "refusal")
    assert (tool.ran, len(run.requests), run.result.result) == ([], 1, "I ")
    await session.submit("something else")
    check(kit, session, results=2)


async def test_a_refusal_without_text_says_why(tmp_path: Path) -> None:
    class Refuses(ScriptedModel):
        def _events(self, turn: Turn, model: str) -> Any:
            for event in super()._events(turn, model):
                if event["type"] == "message_delta":
                    event["delta"]["stop_details"] = {"type": "refusal", "category": "cyber", "explanation": "That is harmful."}
                yield event

    run, _ = await turn(Kit(tmp_path, model=Refuses([Turn(stop_reason="refusal")])))
    assert run.result.result == "That is harmful."


# -- empty and malformed answers ------------------------------------------------------------------------------------------
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}


@pytest.mark.parametrize("blocks", [[], [THOUGHT], [text(" ")]])
async def test_an_empty_answer_is_asked_for_once_more(blocks: Any, tmp_path: Path) -> None:
    run, _ = await turn(Kit(tmp_path, [Turn(blocks=blocks), text("here")]))
    assert (ended(run)[2], run.result.result, len(run.requests)) == ("completed", "here", 2)
    run, _ = await turn(Kit(tmp_path, [Turn(blocks=blocks)] * 5))
    assert (ended(run), run.result.result, len(run.requests)) == (("success", False, "completed", "end_turn"), "", 2)


async def test_an_announced_call_that_is_not_there_is_asked_for_once_more(tmp_path: Path) -> None:
    run, _ = await turn(Kit(tmp_path, [Turn(stop_reason="tool_use")] * 5))
    assert ended(run) == ("error_during_execution", True, "model_error", "tool_use") and len(run.requests) == 2


async def test_malformed_calls_alone_end_the_run_after_a_while(tmp_path: Path, probe: Any) -> None:
    run, _ = await turn(Kit(tmp_path, [[call("Nothing"), call("Probe", n="x")] for _ in range(9)], tools=[probe()]))
    assert ended(run)[:3] == ("error_during_execution", True, "malformed_tool_use_exhausted")
    assert len(run.requests) == 4


async def test_a_good_call_between_malformed_ones_starts_the_count_again(tmp_path: Path, probe: Any) -> None:
    bad = [call("Nothing")] * 3
    run, _ = await turn(Kit(tmp_path, [*bad, call("Probe"), *bad, text("done")], tools=[probe()]))
    assert ended(run)[2] == "completed"


@pytest.mark.parametrize("first", [call("Probe", "same", n=1), {**call("Probe", "same"), "raw_input": "{"}])
async def test_a_call_id_that_was_used_before_gets_a_new_one(first: Any, tmp_path: Path, probe: Any) -> None:
    script: list[Any] = [[first, call("Probe", "same", n=2)], call("Probe", "same", n=3), text("done")]
    run, session = await turn(Kit(tmp_path, script, tools=[probe()]))
    ids = [b["id"] for m in session.history.wire() for b in m["content"] if b["type"] == "tool_use"]
    assert len(ids) == len(set(ids)) == 3 and ids[0] == "same"
    assert run.result.result == "done"


@pytest.mark.parametrize("id", [None, 7, ["x"], {"a": 1}])
async def test_a_call_without_a_usable_id_gets_one_and_bad_input_stays_bad(id: Any, tmp_path: Path, probe: Any) -> None:
    class Odd(ScriptedModel):
        def _events(self, turn: Turn, model: str) -> Any:
            for event in super()._events(turn, model):
                block = event.get("content_block", {})
                yield {**event, "content_block": {**block, "id": id}} if block.get("type") == "tool_use" else event

    bad = {**call("Probe", "x"), "raw_input": '{"n": '}
    run, session = await turn(Kit(tmp_path, model=Odd([bad, call("Probe", "y", n=5), text("done")]), tools=[tool := probe()]))
    assert tool.ran == [{"n": 5}], "a call whose input does not parse is never run"
    assert run.result.result == "done"


# -- limits (9.1) -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("limit", "subtype", "requests"), [
    (1, "error_max_turns", 1), (2, "error_max_turns", 2), (3, "error_max_turns", 3), (4, "success", 4)])
async def test_max_turns_counts_answers_with_calls(limit: int, subtype: str, requests: int, tmp_path: Path, probe: Any) -> None:
    kit = Kit(tmp_path, [call("Probe")] * 3 + [text("done")], tools=[tool := probe()], max_turns=limit)
    run, _ = await turn(kit)
    assert (run.result.subtype, len(run.requests), len(tool.ran)) == (subtype, requests, min(limit, 3))
    if subtype != "success":
        assert ended(run)[2] == "max_turns" and run.result.errors == [f"Reached maximum number of turns ({limit})"]


async def test_an_answer_without_a_call_needs_no_turn(tmp_path: Path) -> None:
    run, _ = await turn(Kit(tmp_path, [text("done")], max_turns=1))
    assert ended(run)[0] == "success"


async def test_the_budget_ends_the_run_after_the_answer_that_crossed_it(tmp_path: Path, probe: Any) -> None:
    model = ScriptedModel([call("Probe")] * 9, prices=Prices(input=100_000.0, output=0.0, cache_write=0.0, cache_read=0.0))
    run, _ = await turn(Kit(tmp_path, model=model, tools=[tool := probe()], max_budget_usd=1.5))
    assert ended(run)[:3] == ("error_max_budget_usd", True, "budget_exhausted")
    assert run.result.errors == ["Reached maximum budget ($1.5)"]
    assert len(run.requests) == len(tool.ran) == 2  # one dollar each
    assert run.result.total_cost_usd == pytest.approx(2.0)


async def test_cost_and_usage(tmp_path: Path) -> None:
    usage = {"input_tokens": 10, "output_tokens": 20, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 40}
    prices = Prices(input=1.0, output=2.0, cache_write=3.0, cache_read=4.0)
    kit = Kit(tmp_path, model=ScriptedModel([Turn(blocks=[text("x")], usage=usage)] * 2, prices=prices))
    session = kit.open()
    first, second = await session.submit("one"), await session.submit("two")
    cost = (10 * 1 + 20 * 2 + 30 * 3 + 40 * 4) / 1e6
    assert first.total_cost_usd == pytest.approx(cost) and second.total_cost_usd == pytest.approx(2 * cost)
    assert (first.usage.input_tokens, second.usage.input_tokens) == (10, 10), "usage is per turn"
    assert list(second.model_usage.values()) == [{
        "inputTokens": 20, "outputTokens": 40, "cacheReadInputTokens": 80, "cacheCreationInputTokens": 60, "webSearchRequests": 0,
        "costUSD": pytest.approx(2 * cost), "contextWindow": 200_000, "maxOutputTokens": 32_000}]


async def test_the_wall_time_of_a_turn_is_its_own(tmp_path: Path) -> None:
    clock = FakeClock()
    kit = Kit(tmp_path, [Turn(fail=ModelError("x", kind="api_error", status=500)), text("a"), text("b")], clock=clock)
    session = kit.open()
    first = await session.submit("one")
    second = await session.submit("two")
    assert first.duration_ms == round(clock.sleeps[0] * 1000) and first.duration_api_ms == 0
    assert (second.duration_ms, second.duration_api_ms) == (0, 0)


# -- failures -------------------------------------------------------------------------------------------------------------
async def test_an_api_error_is_the_answer_and_stop_hooks_do_not_run(tmp_path: Path) -> None:
    seen: list[Any] = []
    hooks = module(stop=lambda event: seen.append("stop"),
                   stop_failure=lambda event: seen.append((event.error, event.error_details)))
    failure = ModelError("no such model", kind="not_found_error", status=404, hint="choose another")
    kit = Kit(tmp_path, [Turn(fail=failure), text("back")], hooks={"h": hooks})
    run, session = await turn(kit)
    assert ended(run) == ("success", True, "api_error", None)
    assert (run.result.result, run.result.api_error_status) == ("API Error 404: no such model (choose another)", 404)
    shown = [m for m in kit.outputs if isinstance(m, AssistantMessage)][-1]
    assert (shown.error, shown.message["content"]) == ("model_not_found", [text(str(run.result.result))])
    assert seen == [("model_not_found", "not_found_error")]
    assert (await session.submit("again")).result == "back"
    assert "API Error" not in json.dumps(session.history.wire())


async def test_a_lost_answer_with_complete_calls_runs_them_and_goes_on(tmp_path: Path, probe: Any) -> None:
    cut = Turn(blocks=[text("one"), call("Probe", n=1), call("Probe", n=2)], cut=8)
    run, _ = await turn(Kit(tmp_path, [cut, text("done")], tools=[tool := probe()]))
    assert tool.ran == [{"n": 1}] and run.result.result == "done"
    assert any("may be incomplete" in n for n in run.notices())
    assert "may be incomplete" in prompts(run)[-1] and SPLIT not in json.dumps(run.requests)


async def test_a_lost_answer_without_a_call_ends_the_run_with_what_was_whole(tmp_path: Path) -> None:
    run, _ = await turn(Kit(tmp_path, [Turn(blocks=[text("first part"), text("second")], cut=5)]))
    assert ended(run)[:3] == ("success", True, "api_error") and len(run.requests) == 1
    assert str(run.result.result).startswith("first part\n\nThe connection was lost")


async def test_a_fault_of_ours_still_gives_one_result_and_a_session_that_works(
        tmp_path: Path, probe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kit = Kit(tmp_path, [call("Probe"), text("back")], tools=[probe()])
    session = kit.open()
    record = session.record
    monkeypatch.setattr(session, "record", lambda *entries: 1 / 0 if "toolUseResult" in entries[0].extra else record(*entries))
    run = await kit.run("go", session)
    check(kit, session)
    assert ended(run)[:3] == ("error_during_execution", True, "model_error")
    assert run.result.errors and "ZeroDivisionError" in run.result.errors[0]
    assert any("Internal failure" in a for a in kit.harness.announced)
    monkeypatch.undo()
    assert (await session.submit("again")).result == "back"


async def test_parts_that_break_at_the_start_are_left_out_and_announced(tmp_path: Path, probe: Any) -> None:
    class Part:
        name, layer = "odd", "rules"

        async def text(self, session: Session) -> str:
            raise KeyError("gone")

    def no_definition() -> Any:
        raise ValueError("schema")

    hooks = module(register_prompt_parts=lambda register: register(Part()))
    kit = Kit(tmp_path, [text("done")], tools=[probe(), probe("Bad", definition=no_definition)], hooks={"p": hooks})
    run, _ = await turn(kit)
    assert run.result.result == "done" and [t["name"] for t in run.requests[0]["tools"]] == ["Probe"]
    assert any("prompt part 'odd'" in a for a in kit.harness.announced)
    assert any("tool Bad is not offered" in a for a in kit.harness.announced)


# -- the messages of a run ---------------------------------------------------------------------------------------------------
async def test_the_messages_of_a_turn_in_order(tmp_path: Path, probe: Any) -> None:
    kit = Kit(tmp_path, [[text("look"), call("Probe"), call("Probe")], text("done")], tools=[probe()])
    run, session = await turn(kit)
    kinds = [f"{m.subtype}" if isinstance(m, SystemMessage) else type(m).__name__ for m in kit.outputs]
    assert kinds == ["init", *["AssistantMessage"] * 3, *["UserMessage"] * 2, "AssistantMessage", "ResultMessage"]
    spoken = [m for m in kit.outputs if isinstance(m, AssistantMessage)]
    assert [len(m.message["content"]) for m in spoken] == [1] * 4
    assert spoken[0].message["id"] == spoken[2].message["id"] != spoken[3].message["id"]
    assert [m.message["stop_reason"] for m in spoken] == [None, None, "tool_use", "end_turn"]
    recorded = {e.uuid for e in session.transcript.entries}  # type: ignore[attr-defined]
    assert {m.uuid for m in kit.outputs if isinstance(m, AssistantMessage | UserMessage)} <= recorded
    assert len({m.uuid for m in kit.outputs}) == len(kit.outputs)


async def test_every_turn_begins_with_an_init_message(tmp_path: Path) -> None:
    kit = Kit(tmp_path, [text("one"), text("two")])
    session = kit.open()
    await session.submit("a", uuid="u-1", origin={"kind": "human"})
    second = await session.submit("b")
    inits = [m.data for m in kit.outputs if isinstance(m, SystemMessage) and m.subtype == "init"]
    assert len(inits) == 2
    assert {"apiKeySource", "claude_code_version", "cwd", "tools", "mcp_servers", "model", "permissionMode", "slash_commands",
            "output_style", "skills", "plugins", "agents"} <= set(inits[0])
    first = next(m for m in kit.outputs if isinstance(m, ResultMessage))
    assert (first.user_message_uuid, first.origin) == ("u-1", {"kind": "human"})
    assert not {"user_message_uuid", "origin"} & set(json.loads(encode_output(second)))


@pytest.mark.parametrize("prompt", ["", "  \n", [], [{"type": "text", "text": " "}]])
async def test_a_blank_prompt_asks_nothing(prompt: Any, tmp_path: Path) -> None:
    hooks = module(user_prompt_submit=lambda event: UserPromptSubmitResult(decision="block"))
    kit = Kit(tmp_path, [text("never")], hooks={"h": hooks})
    session = kit.open()
    result = await session.submit(prompt)
    assert (result.subtype, result.is_error, result.terminal_reason) == ("success", False, "completed")
    assert len(kit.model.requests) == len(session.history) == 0


async def test_the_history_grows_and_old_messages_stay_word_for_word(tmp_path: Path, probe: Any) -> None:
    run, session = await turn(Kit(tmp_path, [call("Probe"), call("Probe"), text("done")], tools=[probe()]))
    for earlier, later in zip(run.requests, run.requests[1:], strict=False):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
        assert (later["system"], later["tools"]) == (earlier["system"], earlier["tools"])

