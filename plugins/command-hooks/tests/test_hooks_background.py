"""Handlers that nobody waits for, the end of a session, and what the stream says (hooks contract, sections 7, 15 and 18.3)."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest
from kernel_command_hooks.answer import Ran
from kernel_command_hooks.hooks import STATE, Hooks

from kernel import EVENTS
from kernel.testing import alive, call, text

pytestmark = pytest.mark.anyio

PRE, POST, STOP, END = EVENTS["PreToolUse"], EVENTS["PostToolUse"], EVENTS["Stop"], EVENTS["SessionEnd"]
TOOL = {"tool_name": "Write", "tool_input": {}, "tool_use_id": "i"}


def in_background(command: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": command, "async": True, **more}


async def eventually(true: Any) -> None:
    """Wait for what another process does; a test that never sees it fails by its own assertion."""
    deadline = time.monotonic() + 10
    while not true() and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.02)


def running(session: Any) -> int:
    background = session.plugin_state[STATE].running.background
    return len(background._killed) + len(background._finished)


# -- async -------------------------------------------------------------------------------------------------------------
async def test_an_async_handler_is_not_waited_for_and_cannot_deny(world: Any) -> None:
    gate = world.root / "gate"
    waits = f"while [ ! -e {gate} ]; do sleep 0.05; done; echo no >&2; exit 2"
    world.settings(hooks=world.hooks("PreToolUse", in_background(waits)))
    session = world.start()
    merged = await world.fire(session, PRE, **TOOL)
    assert merged.decision is None and running(session) == 1
    gate.touch()
    await eventually(lambda: not running(session))
    assert running(session) == 0 and not world.notices()


async def test_its_texts_go_to_the_model_with_the_next_turn_and_to_nobody_else(world: Any, echo: Any) -> None:
    out = {"systemMessage": "bg-sys", "hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "bg-ctx",
                                                            "classifierContext": "c"}}
    world.settings(hooks=world.hooks("PostToolUse", in_background(world.handler("a", json_out=out))))
    session = world.start([call("Write"), text("one"), text("two")], tools=[echo("Write")])
    await world.prompt("go", session)
    await eventually(lambda: not running(session))
    assert "bg-" not in world.model_saw()
    await world.prompt("again", session)
    assert "bg-sys" in world.model_saw() and "bg-ctx" in world.model_saw()
    assert not world.notices()


@pytest.mark.parametrize(("out", "kept"), [
    ({"systemMessage": 5, "hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "kept"}}, ["kept"]),
    ({"systemMessage": "kept", "hookSpecificOutput": {"additionalContext": ["x"]}}, ["kept"]),
    ({"systemMessage": "kept", "hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "other"}}, ["kept"]),
    ({"systemMessage": "kept", "hookSpecificOutput": 5}, ["kept"]), ({"hookSpecificOutput": {}}, [])])
async def test_a_field_of_the_wrong_type_is_dropped_and_the_others_count(world: Any, out: Any, kept: list[str]) -> None:
    world.settings(hooks=world.hooks("PostToolUse", in_background(world.handler("a", json_out=out))))
    session = world.start()
    await world.fire(session, POST, tool_response="x", **TOOL)
    await eventually(lambda: not running(session))
    assert [t for t in ("kept", "other") if t in str(session.pending)] == kept
    await session.close()


async def test_an_async_handler_gets_600_seconds_whatever_the_event(world: Any) -> None:
    world.settings(hooks=world.hooks("UserPromptSubmit", in_background("sleep 60")))
    session = world.start()
    seen: list[float] = []

    async def keep(call: Any) -> Ran:
        seen.append(call.timeout)
        return Ran()
    hooks = session.plugin_state[STATE] = Hooks(session)
    hooks.running._runner = lambda type: keep
    await world.fire(session, EVENTS["UserPromptSubmit"], prompt="p")
    await eventually(lambda: seen)
    assert seen == [600.0]


async def test_an_async_handler_that_cannot_start_is_told(world: Any) -> None:
    world.settings(hooks=world.hooks("PostToolUse", in_background("no-such-program-xyz")))
    session = world.start()
    await world.fire(session, POST, tool_response="x", **TOOL)
    await eventually(lambda: not running(session))
    assert "could not be started" in world.notices()[0]


# -- asyncRewake -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("does", "says"), [
    ({"exit": 2, "stderr": "deploy failed", "stdout": "ignored"}, "look here: deploy failed"),
    ({"exit": 2, "stdout": "from stdout"}, "look here: from stdout"), ({"exit": 1, "stderr": "no"}, None)])
async def test_exit_2_tells_the_model_within_the_turn(world: Any, echo: Any, does: dict[str, Any], says: str | None) -> None:
    """The handler ends while the turn is still running; the model hears of it with its next request."""
    handler = {"type": "command", "command": world.handler("a", **does), "asyncRewake": True, "rewakeMessage": "look here:",
               "rewakeSummary": "the deploy is told of"}
    world.settings(hooks=world.hooks("PostToolUse", handler, matcher="First"))
    session = world.start([call("First"), call("Second"), text("done")], tools=[echo("First"), Slow(world, echo)])
    await world.prompt("go", session)
    seen = [m for r in world.kit.model.requests for m in (str(r["messages"]),)]
    assert [says is not None and " ".join(says.split()) in " ".join(s.replace("\\n", " ").split()) for s in seen] == [
        False, False, says is not None]
    assert ("the deploy is told of" in world.notices()) is (says is not None), "the person gets one line"
    await session.close()


def Slow(world: Any, echo: Any) -> Any:
    """A tool that runs until the background handler has ended."""
    class Second(echo):  # type: ignore[misc, valid-type]
        async def call(self, input: Any, context: Any) -> Any:
            await eventually(lambda: world.ended() and not running(context.session))
            return await super().call(input, context)
    return Second("Second")


async def test_what_comes_behind_the_turn_waits_for_the_next_prompt(world: Any) -> None:
    handler = {"type": "command", "command": world.handler("a", exit=2, stderr="deploy failed"), "asyncRewake": True}
    world.settings(hooks=world.hooks("SessionStart", handler))
    session = world.start([text("one"), text("two")])
    await session.start()
    await eventually(lambda: not running(session))
    await world.prompt("go", session)
    assert "deploy failed" in world.model_saw()


async def test_in_a_print_run_a_stop_handler_that_could_wake_is_waited_for(world: Any) -> None:
    once = "[ -e again ] || { touch again; echo 'run the tests' >&2; exit 2; }"
    world.settings(hooks=world.hooks("Stop", {"type": "command", "command": once, "asyncRewake": True}))
    session = world.start([text("one"), text("two")])
    run = await world.prompt("go", session)
    assert len(run.requests) == 2 and "run the tests" in world.model_saw()


# -- interrupts -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", [1, 3])
async def test_an_interrupt_ends_running_handlers_and_their_children(world: Any, echo: Any, number: int) -> None:
    pids = [world.log / f"{n}.pid" for n in range(number)]
    world.settings(hooks=world.hooks("PreToolUse", *[f"sleep 300 & echo $! > {pid}; wait" for pid in pids]))
    tool = echo("Write")
    session = world.start([call("Write"), text("never")], tools=[tool])

    async def interrupt() -> None:
        await eventually(lambda: all(p.exists() and p.read_text() for p in pids))
        session.interrupt()
    other = asyncio.ensure_future(interrupt())
    run = await world.prompt("go", session)
    await other
    assert run.result.terminal_reason == "aborted_tools" and tool.inputs == []
    await eventually(lambda: not any(alive(int(p.read_text())) for p in pids))
    assert not any(alive(int(p.read_text())) for p in pids)


# -- events that wait for no handler -----------------------------------------------------------------------------------
async def test_an_event_that_waits_for_none_is_not_held_up_but_its_handlers_may_finish(world: Any) -> None:
    world.settings(hooks=world.hooks("InstructionsLoaded", world.handler("a", sleep_s=0.3)))
    session = world.start()
    session._started = True
    await world.fire(session, EVENTS["InstructionsLoaded"], file_path="/f", memory_type="User", load_reason="session_start")
    assert world.ended() == []
    await session.close()
    assert world.ended() == ["a"]


@pytest.mark.parametrize(("source", "told"), [("slash_command", True), ("register_repo_root", False)])
async def test_the_message_of_an_added_directory_is_for_the_model(world: Any, source: str, told: bool) -> None:
    world.settings(hooks=world.hooks("DirectoryAdded", world.handler("a", json_out={"systemMessage": "deps installed"})))
    session = world.start()
    await world.fire(session, EVENTS["DirectoryAdded"], directory="/d", source=source)
    await eventually(lambda: not running(session))
    assert ("deps installed" in str(session.pending)) is told and not world.notices()


# -- the end of a session ----------------------------------------------------------------------------------------------
async def test_async_handlers_are_ended_with_the_session_and_reported(world: Any) -> None:
    pid = world.log / "sleeper.pid"
    world.settings(hooks=world.hooks("PostToolUse", in_background(f"echo $$ > {pid}; exec sleep 300")))
    session = world.start(include_hook_events=True)
    session._started = True
    await world.fire(session, POST, tool_response="x", **TOOL)
    await eventually(lambda: pid.exists() and pid.read_text())
    began = time.monotonic()
    await session.close()
    assert time.monotonic() - began < 5
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()
    assert [m["outcome"] for m in world.hook_messages("hook_response")] == ["cancelled"]


async def test_a_clear_lets_background_handlers_run_on(world: Any) -> None:
    world.settings(hooks=world.hooks("PostToolUse", in_background("sleep 300")))
    session = world.start()
    await world.fire(session, POST, tool_response="x", **TOOL)
    await world.fire(session, END, reason="clear")
    assert running(session) == 1
    await world.fire(session, END, reason="other")
    assert running(session) == 0


@pytest.mark.parametrize(("scope", "timeouts", "env", "budget"), [
    ("project", [], None, 1.5), ("project", [5], None, 5.0), ("project", [5, 9], None, 9.0), ("project", [600], None, 60.0),
    ("project", [0.1], None, 1.5), ("plugin", [30], None, 1.5), ("project", [30], "250", 0.25)])
async def test_the_budget_of_the_end(world: Any, scope: str, timeouts: list[float], env: str | None, budget: float) -> None:
    handlers = [{"type": "command", "command": f"true {n}", "timeout": t} for n, t in enumerate(timeouts)]
    hooks = world.hooks("SessionEnd", *handlers, "true")
    if scope == "plugin":
        world.plugin("p", {"hooks/hooks.json": {"hooks": hooks}})
    else:
        world.settings(hooks=hooks)
    if env:
        os.environ["CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS"] = env
    session = world.start()
    await world.fire(session, END, reason="other")
    assert session.plugin_state[STATE].running.end_budget() == budget


async def test_all_handlers_of_the_end_share_the_budget(world: Any) -> None:
    os.environ["CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS"] = "300"
    quick = world.handler("quick")
    world.settings(hooks=world.hooks("SessionEnd", *[f"sleep 30; echo {n}" for n in range(3)], quick, in_background(quick + " ")))
    session = world.start()
    began = time.monotonic()
    await world.fire(session, END, reason="other")
    assert time.monotonic() - began < 5 and world.ended().count("quick") == 2


# -- the stream --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("event", "fields", "listening", "subtypes"), [
    ("SessionStart", {"source": "startup"}, False, ["hook_started", "hook_response"]),
    ("Setup", {"trigger": "init"}, False, ["hook_started", "hook_response"]),
    ("PreToolUse", TOOL, False, []), ("PreToolUse", TOOL, True, ["hook_started", "hook_response"]),
    ("PreCompact", {"trigger": "auto", "custom_instructions": ""}, True, []), ("SessionEnd", {"reason": "other"}, True, []),
    ("Notification", {"message": "m", "notification_type": "idle_prompt"}, True, ["hook_response"])])
async def test_which_messages_a_run_sends(world: Any, event: str, fields: dict[str, Any], listening: bool,
                                          subtypes: list[str]) -> None:
    world.settings(hooks=world.hooks(event, "echo out; echo err >&2; exit 3"))
    session = world.start(include_hook_events=listening)
    await world.fire(session, EVENTS[event], **fields)
    await eventually(lambda: not running(session))
    messages = world.hook_messages()
    assert [m["subtype"] for m in messages] == subtypes
    assert len({m["hook_id"] for m in messages}) <= 1
    if messages:
        last = messages[-1]
        assert (last["stdout"], last["stderr"], last["output"]) == ("out\n", "err\n", "out\nerr\n")
        assert (last["exit_code"], last["outcome"], last["hook_event"]) == (3, "error", event)
        assert last["hook_name"].startswith(f"{event}:")


@pytest.mark.parametrize(("command", "outcome"), [
    ("exit 0", "success"), ("exit 2", "error"), ("exit 1", "error"), ("echo '{}'; exit 1", "success"), ("sleep 60", "cancelled"),
    ("echo '{\"decision\": 5}'", "error")])
async def test_the_outcome_of_a_run(world: Any, command: str, outcome: str) -> None:
    world.settings(hooks=world.hooks("PreToolUse", {"type": "command", "command": command, "timeout": 0.5}))
    session = world.start(include_hook_events=True)
    await world.fire(session, PRE, **TOOL)
    assert world.hook_messages("hook_response")[0]["outcome"] == outcome


async def test_a_handler_that_prints_for_long_sends_progress(world: Any) -> None:
    slow = {"type": "command", "command": "echo early; sleep 1.5; echo late", "timeout": 20}
    world.settings(hooks=world.hooks("SessionEnd", slow))
    session = world.start(include_hook_events=True)
    await world.fire(session, END, reason="other")
    (progress,) = world.hook_messages()
    assert (progress["subtype"], progress["stdout"]) == ("hook_progress", "early\n")


async def test_a_message_does_not_grow_with_the_output(world: Any) -> None:
    world.settings(hooks=world.hooks("SessionStart", "head -c 3000000 /dev/zero | tr '\\0' x"))
    session = world.start([text("done")])
    await world.prompt("go", session)
    assert all(len(str(m)) < 100_000 for m in world.hook_messages())
    assert len(world.model_saw()) < 100_000
