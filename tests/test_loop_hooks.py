"""What hooks can do to a turn: refuse the prompt, add context, keep it going, end it (hooks contract, 11, 14 and 18)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernel.events import PostToolUseResult, SessionStartResult, SetupResult, StopResult, UserPromptSubmitResult
from kernel.models import ModelInfo
from kernel.output import SystemMessage
from kernel.testing import Kit, ScriptedModel, call, module, text
from kernel.transcript import Restored

pytestmark = pytest.mark.anyio


def seen_by_model(kit: Kit, request: int = 0) -> str:
    return json.dumps(kit.model.requests[request]["messages"], ensure_ascii=False)


# -- the prompt -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("answer", "shown"), [
    (UserPromptSubmitResult(decision="block", reason="not here"), "not here"),
    (UserPromptSubmitResult(continue_=False, stop_reason="closed"), "closed"),
    (UserPromptSubmitResult(continue_=False, stop_reason="closed", decision="block", reason="not here"), "closed"),
    (UserPromptSubmitResult(decision="block"), "Blocked by h")])
async def test_a_refused_prompt_never_reaches_the_model(answer: Any, shown: str, tmp_path: Path) -> None:
    kit = Kit(tmp_path, [text("fine")], hooks={"h": module(
        user_prompt_submit=lambda event: answer if "secret" in event.prompt else None)})
    session = kit.open()
    run = await kit.run("a secret", session)
    assert (run.result.subtype, run.result.terminal_reason, run.result.result) == ("success", "hook_stopped", shown)
    assert kit.model.requests == [] and len(session.history) == 0
    banner = [m.data for m in kit.outputs if isinstance(m, SystemMessage) and m.subtype == "informational"]
    assert shown in banner[0]["content"] and banner[0]["prevent_continuation"] is True
    assert (await session.submit("hello")).result == "fine"
    assert "secret" not in seen_by_model(kit) and shown not in seen_by_model(kit)


async def test_a_prompt_hook_that_fails_refuses_the_prompt(tmp_path: Path) -> None:
    def broken(event: Any) -> None:
        raise RuntimeError("no list of secrets")

    kit = Kit(tmp_path, [text("never")], hooks={"guard": module(user_prompt_submit=broken)})
    run = await kit.run("go")
    assert run.requests == [] and "plugin 'guard'" in str(run.result.result)
    assert any("no list of secrets" in a for a in kit.harness.announced)


async def test_context_stands_behind_the_prompt_and_a_long_one_goes_to_a_file(tmp_path: Path) -> None:
    def add(event: Any) -> list[Any]:
        return [UserPromptSubmitResult(additional_context="x" * 10_000), UserPromptSubmitResult(additional_context="y" * 10_001)]

    kit = Kit(tmp_path, [text("done")], hooks={"h": module(user_prompt_submit=add)})
    await kit.run("my prompt")
    first, exact, long = (b["text"] for b in kit.model.requests[0]["messages"][0]["content"])
    assert first == "my prompt" and "x" * 10_000 in exact
    assert "y" * 2_000 in long and "y" * 2_001 not in long and "10001 characters in all" in long
    path = long.rsplit("the whole text is in ", 1)[1].split(")")[0]
    assert Path(path).read_text() == "y" * 10_001


async def test_the_prompt_event_carries_what_the_contract_says(tmp_path: Path) -> None:
    seen: list[Any] = []
    hooks = module(user_prompt_submit=lambda event: seen.append(event))
    kit = Kit(tmp_path, [text("one"), text("two")], name="my title", hooks={"h": hooks})
    session = kit.open()
    await session.submit("a")
    await session.submit([{"type": "text", "text": "b"}, {"type": "image", "source": {}}])
    assert [e.prompt for e in seen] == ["a", "b"]
    assert seen[0].session_id == session.id and seen[0].cwd == str(tmp_path) and seen[0].permission_mode == "default"
    assert seen[0].prompt_id and seen[0].prompt_id != seen[1].prompt_id
    assert seen[0].session_title == "my title"


# -- the start ----------------------------------------------------------------------------------------------------------------
async def test_context_of_the_start_is_first_in_the_conversation_and_given_once(tmp_path: Path) -> None:
    order: list[str] = []

    def setup(event: Any) -> SetupResult:
        order.append(f"setup {event.trigger}")
        return SetupResult(additional_context="set up")

    def session_start(event: Any) -> SessionStartResult:
        order.append(f"start {event.source}")
        return SessionStartResult(additional_context="started", session_title="a title", initial_user_message="begin here",
                                  continue_=False)

    hooks = {"h": module(setup=setup, session_start=session_start)}
    kit = Kit(tmp_path, [text("one"), text("two")], hooks=hooks, setup_trigger="init")
    session = kit.open()
    await session.start()
    assert (session.title, session.initial_message) == ("a title", "begin here")
    await session.submit("prompt")
    await session.submit("again")
    assert order == ["setup init", "start startup"]
    content = [b["text"] for b in kit.model.requests[0]["messages"][0]["content"]]
    assert ["set up" in content[0], "started" in content[1], content[2]] == [True, True, "prompt"]
    assert seen_by_model(kit, 1).count("started") == 1


async def test_a_prompt_that_is_refused_does_not_lose_the_context_of_the_start(tmp_path: Path) -> None:
    hooks = module(session_start=lambda event: SessionStartResult(additional_context="important"),
                   user_prompt_submit=lambda event: UserPromptSubmitResult(decision="block") if event.prompt == "bad" else None)
    kit = Kit(tmp_path, [text("ok")], hooks={"h": hooks})
    session = kit.open()
    await session.submit("bad")
    await session.submit("good")
    assert "important" in seen_by_model(kit)


async def test_the_end_is_told_once_and_only_if_there_was_a_start(tmp_path: Path) -> None:
    seen: list[str] = []
    kit = Kit(tmp_path, [text("x")], hooks={"h": module(session_end=lambda event: seen.append(event.reason))})
    unused = kit.open()
    await unused.close()
    assert seen == []
    session = kit.open()
    await session.submit("go")
    await session.close("clear")
    await session.close("other")
    assert seen == ["clear"]


# -- Stop (section 14) --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("answer", [
    StopResult(decision="block", reason="run the tests"), StopResult(additional_context="run the tests")])
async def test_a_stop_hook_sends_the_turn_on_with_its_feedback(answer: Any, tmp_path: Path) -> None:
    seen: list[tuple[bool, str | None]] = []

    def stop(event: Any) -> Any:
        seen.append((event.stop_hook_active, event.last_assistant_message))
        return answer if len(seen) == 1 else None

    kit = Kit(tmp_path, [text("first"), text("second")], hooks={"h": module(stop=stop)})
    run = await kit.run("go")
    assert (run.result.result, run.result.terminal_reason, run.result.num_turns) == ("second", "completed", 2)
    assert seen == [(False, "first"), (True, "second")]
    assert kit.model.requests[1]["messages"][-1]["content"][-1]["text"] == "Stop hook feedback: run the tests"
    assert run.result.stop_reason == "end_turn"


@pytest.mark.parametrize(("cap", "requests"), [(None, 9), ("2", 3), ("0", 13), ("x", 9)])
async def test_a_stop_hook_is_ignored_after_so_many_blocks_in_a_row(
        cap: str | None, requests: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if cap is not None:
        monkeypatch.setenv("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", cap)
    calls = iter(range(100))
    hooks = module(stop=lambda event: StopResult(decision="block", reason="again") if next(calls) < 12 else None)
    kit = Kit(tmp_path, [text(str(n)) for n in range(40)], hooks={"h": hooks})
    run = await kit.run("go")
    assert len(run.requests) == requests
    assert (run.result.terminal_reason, run.result.result) == ("completed", str(requests - 1))
    assert any("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP" in n for n in run.notices()) == (cap != "0")


async def test_work_between_two_stops_starts_the_count_again(tmp_path: Path, probe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "1")
    active: list[bool] = []

    def stop(event: Any) -> StopResult:
        active.append(event.stop_hook_active)
        return StopResult(decision="block", reason="again")

    kit = Kit(tmp_path, [text("a"), call("Probe"), text("b"), text("c")], tools=[probe()], hooks={"h": module(stop=stop)})
    run = await kit.run("go")
    assert active == [False, False, True] and run.result.result == "c"


async def test_continue_false_ends_the_turn_over_any_block(tmp_path: Path) -> None:
    hooks = {"a": module(stop=lambda event: StopResult(decision="block", reason="on")),
             "b": module(stop=lambda event: StopResult(continue_=False, stop_reason="off"))}
    run = await Kit(tmp_path, [text("answer")], hooks=hooks).run("go")
    assert (len(run.requests), run.result.terminal_reason, run.result.result) == (1, "hook_stopped", "answer")
    assert "off" in run.notices() and "off" not in json.dumps(run.requests)


async def test_a_stop_hook_that_fails_is_told_and_ends_nothing(tmp_path: Path) -> None:
    def broken(event: Any) -> None:
        raise RuntimeError("boom")

    kit = Kit(tmp_path, [text("answer")], hooks={"h": module(stop=broken)})
    run = await kit.run("go")
    assert (run.result.result, run.result.terminal_reason) == ("answer", "completed")
    assert any("Stop hook error: plugin 'h': RuntimeError: boom" in n for n in run.notices())


# -- texts for the person ------------------------------------------------------------------------------------------------------
async def test_a_system_message_is_for_the_person_with_the_hooks_name_on_every_line(tmp_path: Path, probe: Any) -> None:
    hooks = module(post_tool_use=lambda event: PostToolUseResult(system_message="one\ntwo"))
    kit = Kit(tmp_path, [call("Probe"), text("done")], tools=[probe()], hooks={"h": hooks})
    run = await kit.run("go")
    assert "PostToolUse:Probe says: one\nPostToolUse:Probe says: two" in run.notices()
    assert "says:" not in seen_by_model(kit, 1)


async def test_two_rewrites_of_one_value_are_reported(tmp_path: Path, probe: Any) -> None:
    hooks = {n: module(post_tool_use=lambda event: PostToolUseResult(updated_tool_output="x")) for n in "ab"}
    run = await Kit(tmp_path, [call("Probe"), text("done")], tools=[probe()], hooks=hooks).run("go")
    assert any("b and a all replaced the same value; the one of b counts" in n for n in run.notices())


async def test_every_firing_can_be_traced(tmp_path: Path, probe: Any) -> None:
    traced: list[tuple[str, list[str]]] = []
    kit = Kit(tmp_path, [call("Probe"), text("done")], tools=[probe()], hooks={
        "h": module(pre_tool_use=lambda event: None, stop=lambda event: None)})
    kit.harness.trace_sink = lambda session, event, outcomes, merged: traced.append(
        (event.event_name, [o.plugin for o in outcomes]))
    await kit.run("go")
    assert traced == [("PreToolUse", ["h"]), ("Stop", ["h"])]


async def test_effort_goes_with_tool_and_stop_events_where_the_model_has_it(tmp_path: Path, probe: Any) -> None:
    class Thinks(ScriptedModel):
        def resolve(self, model: str) -> ModelInfo:
            return ModelInfo(id=model, effort=True)

    for model, level in ((Thinks, {"level": "high"}), (ScriptedModel, None)):
        seen: dict[str, Any] = {}
        hooks = module(pre_tool_use=_note(seen, "pre"), stop=_note(seen, "stop"), user_prompt_submit=_note(seen, "prompt"))
        script = model([call("Probe"), text("done")])
        await Kit(tmp_path, model=script, tools=[probe()], hooks={"h": hooks}, effort="high").run("go")
        assert seen == {"pre": level, "stop": level, "prompt": None}


def _note(seen: dict[str, Any], key: str) -> Any:
    return lambda event: seen.update({key: event.effort})


async def test_a_resumed_history_is_mended_and_gets_fresh_context(tmp_path: Path) -> None:
    hooks = module(session_start=lambda event: SessionStartResult(additional_context="fresh"))
    kit = Kit(tmp_path, [text("back")], hooks={"h": hooks})
    session = kit.open()
    call_block = {"type": "tool_use", "id": "t1", "name": "Probe", "input": {}}
    session.transcript.restored = Restored(messages=[("user", "old prompt"), ("assistant", [call_block])])
    await session.submit("and now?")
    messages = kit.model.requests[0]["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "user"]
    assert messages[2]["content"][0]["tool_use_id"] == "t1" and "interrupted" in messages[2]["content"][0]["content"]
    assert "fresh" in messages[2]["content"][1]["text"] and messages[2]["content"][2]["text"] == "and now?"
