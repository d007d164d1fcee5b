"""Handlers that talk to what other plugins bring: MCP servers, the embedding program, front matter of skills and agents."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from kernel_command_hooks.hooks import CALLBACKS, SOURCES

from kernel import EVENTS
from kernel.testing import call, text

from .case_hosts import Bridge, callback
from .conftest import World

pytestmark = pytest.mark.anyio
MCP = {"type": "mcp_tool", "server": "scan", "tool": "check", "input": {"name": "${tool_name}"}}


# -- MCP ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("event", "fields", "guard"), [
    ("PreToolUse", {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "t"}, True), ("Stop", {"stop_hook_active": True}, True),
    ("SessionStart", {"source": "startup"}, False)])
async def test_without_a_bridge_a_guard_is_announced(world: World, event: str, fields: dict[str, Any], guard: bool) -> None:
    world.settings(hooks=world.hooks(event, MCP))
    session = world.start()
    merged = await world.fire(session, EVENTS[event], **fields)
    assert not merged.blocked and merged.decision is None
    assert any("'scan' is not connected" in n for n in world.notices())
    assert bool(session.harness.announced) is guard


@pytest.mark.parametrize(("text", "context"), [
    ('{"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "clean"}}', ["clean"]),
    ("just text", []), ("", []), ('{"hookSpecificOutput": {"hookEventName": "Stop"}}', [])])
async def test_the_text_of_a_tool_is_read_like_stdout(world: World, text: str, context: list[str]) -> None:
    world.settings(hooks=world.hooks("PostToolUse", MCP))
    session = world.start()
    bridge = session.plugin_state["mcp"] = Bridge(world, "m", {"text": text or " "})
    merged = await world.fire(session, EVENTS["PostToolUse"], tool_name="Write", tool_input={}, tool_use_id="t", tool_response="")
    assert [t.text for t in merged.contexts] == context
    assert bridge.inputs == [("scan", "check", {"name": "Write"})]


async def test_a_slow_server_has_the_handlers_time(world: World) -> None:
    world.settings(hooks=world.hooks("PreToolUse", {**MCP, "timeout": 0.1}))
    session = world.start()

    class Slow(Bridge):
        async def call(self, server: str, tool: str, input: dict[str, Any]) -> tuple[str, bool]:
            await anyio.sleep(60)
            raise AssertionError

    session.plugin_state["mcp"] = Slow(world, "m", {})
    merged = await world.fire(session, EVENTS["PreToolUse"], tool_name="Bash", tool_input={}, tool_use_id="t")
    assert merged.decision is None and any("timed out after 0.1 s" in n for n in world.notices())


# -- the embedding program ---------------------------------------------------------------------------------------------
PRE = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t"}


def deny(reason: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                                   "permissionDecisionReason": reason}}


def entries(world: World, does: dict[str, Any], event: str = "PreToolUse", **more: Any) -> dict[str, list[dict[str, Any]]]:
    return {event: [{"callback": callback(world, "s", does, []), **more}]}


async def test_a_program_replaces_its_callbacks(world: World) -> None:
    session = world.start()
    session.plugin_state[CALLBACKS] = entries(world, {"json": deny("one")}, matcher="Bash")
    assert (await world.fire(session, EVENTS["PreToolUse"], **PRE)).reason == "one"
    session.plugin_state[CALLBACKS] = entries(world, {"json": deny("two")}, matcher="Edit")
    assert (await world.fire(session, EVENTS["PreToolUse"], **PRE)).decision is None
    assert (await world.fire(session, EVENTS["PreToolUse"], **{**PRE, "tool_name": "Edit"})).reason == "two"
    session.plugin_state[CALLBACKS] = {}
    assert (await world.fire(session, EVENTS["PreToolUse"], **{**PRE, "tool_name": "Edit"})).decision is None


@pytest.mark.parametrize("does", [{"sleep_s": 60}, {"error": "lost"}, {"json": "no object"}])
@pytest.mark.parametrize(("event", "fields", "refused"), [
    ("PreToolUse", PRE, True), ("UserPromptSubmit", {"prompt": "p"}, True),
    ("UserPromptExpansion", {"expansion_type": "slash_command", "command_name": "c", "command_args": "", "prompt": "/c"}, True),
    ("PostToolUse", {**PRE, "tool_response": "r"}, False), ("PostToolUseFailure", {**PRE, "error": "e"}, False),
    ("Stop", {"stop_hook_active": False}, False), ("PreCompact", {"trigger": "auto", "custom_instructions": ""}, False)])
async def test_what_a_callback_comes_to_that_does_not_answer(world: World, event: str, fields: dict[str, Any], refused: bool,
                                                             does: dict[str, Any]) -> None:
    session = world.start()
    session.plugin_state[CALLBACKS] = entries(world, does, event, timeout=0.2)
    merged = await world.fire(session, EVENTS[event], **fields)
    assert (merged.decision == "deny" or merged.blocked) is refused
    if refused:
        assert event in (merged.reason or merged.block_reason)
        assert "timed out after 0.2 s" in merged.reason + merged.block_reason or "sleep_s" not in does


async def test_a_denial_that_somebody_decided_wins_over_a_callback_that_is_late(world: World) -> None:
    world.settings(hooks=world.hooks("PreToolUse", world.handler("d", exit=2, stderr="not on main")))
    session = world.start()
    session.plugin_state[CALLBACKS] = entries(world, {"sleep_s": 60}, timeout=0.2)
    merged = await world.fire(session, EVENTS["PreToolUse"], **PRE)
    assert merged.decision == "deny" and merged.reason == "not on main"


async def test_an_output_that_says_async_decides_nothing(world: World) -> None:
    session = world.start()
    session.plugin_state[CALLBACKS] = entries(world, {"json": {"async": True, "asyncTimeout": 100, **deny("late")}})
    assert (await world.fire(session, EVENTS["PreToolUse"], **PRE)).decision is None
    assert world.ran() == ["s"]


@pytest.mark.parametrize(("scope", "values", "runs"), [
    ("project", {"disableAllHooks": True}, True), ("managed", {"allowManagedHooksOnly": True}, True),
    ("managed", {"strictPluginOnlyCustomization": True}, True), ("managed", {"disableAllHooks": True}, False)])
async def test_which_settings_switch_callbacks_off(world: World, scope: str, values: dict[str, Any], runs: bool) -> None:
    world.settings(scope, **values)
    session = world.start()
    session.plugin_state[CALLBACKS] = entries(world, {"json": deny("program")})
    assert ((await world.fire(session, EVENTS["PreToolUse"], **PRE)).decision == "deny") is runs


@pytest.mark.parametrize("entry", [
    {}, "x", {"callback": 1, "matcher": 3}, {"callback": 1, "timeout": -1}, {"callback": 1, "timeout": "1"}])
async def test_a_callback_of_the_wrong_shape_is_announced_and_the_others_are_called(world: World, entry: Any) -> None:
    session = world.start()
    good = entries(world, {"json": deny("good")})
    session.plugin_state[CALLBACKS] = {"PreToolUse": [entry, *good["PreToolUse"]], "NoSuchEvent": [entry]}
    assert (await world.fire(session, EVENTS["PreToolUse"], **PRE)).reason == "good"
    assert any("PreToolUse[0]" in t and "never called" in t for t in session.harness.announced)
    assert any("NoSuchEvent" in t for t in session.harness.announced)


# -- front matter ------------------------------------------------------------------------------------------------------
def source(world: World, **more: Any) -> dict[str, Any]:
    return {"label": "front matter", "hooks": world.hooks("PreToolUse", world.handler("f")), **more}


async def test_once_means_once_although_settings_are_read_again(world: World, make_bash: Any) -> None:
    session = world.start([call("Bash", command="a"), call("Bash", command="b"), text("done")], tools=[make_bash()])
    hooks = world.hooks("PreToolUse", {"type": "command", "command": world.handler("f"), "once": True})
    session.plugin_state[SOURCES] = [{"label": "skill s", "hooks": hooks, "skill": True}]
    await world.fire(session, EVENTS["PreToolUse"], **PRE)
    world.settings(env={"A": "1"})
    session.harness.settings = world.read_settings()
    await world.prompt("go", session)
    assert world.ran() == ["f"]


@pytest.mark.parametrize(("more", "print_mode", "trusted", "runs"), [
    ({"skill": True}, False, False, True), ({"skill": True, "project": True}, False, False, False),
    ({"skill": True, "project": True}, True, False, True), ({"skill": True, "project": True}, False, True, True),
    ({"subagent": True}, True, False, True), ({"subagent": True, "project": True}, True, False, False),
    ({"subagent": True, "project": True}, False, False, False), ({"subagent": True, "project": True}, True, True, True)])
async def test_front_matter_of_the_project_waits_for_trust(world: World, more: dict[str, Any], print_mode: bool, trusted: bool,
                                                           runs: bool) -> None:
    if trusted:
        world.trust()
    session = world.start(print_mode=print_mode)
    session.plugin_state[SOURCES] = [source(world, **more)]
    await world.fire(session, EVENTS["PreToolUse"], **PRE)
    assert world.ran() == (["f"] if runs else [])
    assert runs or any("left out" in line and "trusted" in line for line in world.debug)


async def test_trust_of_a_folder_above_is_not_enough_for_a_projects_subagent(world: World) -> None:
    (world.cwd / ".git").mkdir()
    inner = world.cwd / "inner"
    inner.mkdir()
    world.trust()
    world.cwd = inner
    session = world.start(print_mode=True)
    assert session.settings.trusted
    session.plugin_state[SOURCES] = [source(world, subagent=True, project=True)]
    await world.fire(session, EVENTS["PreToolUse"], **PRE)
    assert world.ran() == []


# -- hooks hold ----------------------------------------------------------------------------------------------------------
async def test_hooks_hold_after_a_resume_and_what_they_said_is_there_again(world: World, make_bash: Any) -> None:
    """SessionStart runs again; the others' context of the past is replayed, and their handlers are not."""
    say = {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "mind the gap"}}
    world.settings(hooks={**world.hooks("SessionStart", world.handler("s")),
                          **world.hooks("UserPromptSubmit", world.handler("u", json_out=say)),
                          **world.hooks("PreToolUse", world.handler("g", exit=2, stderr="no"))})
    options: dict[str, Any] = {"installed": ["sessions"], "persist": True}
    session = world.start([call("Bash", command="a"), text("one")], tools=[make_bash()], **options)
    await world.prompt("first", session)
    await session.close()
    tool = make_bash()
    again = world.start([call("Bash", "again", command="b"), text("two")], tools=[tool], resume=session.id, **options)
    await world.prompt("second", again)
    assert [i["source"] for i in world.inputs("s")] == ["startup", "resume"]
    assert [i["prompt"] for i in world.inputs("u")] == ["first", "second"] and world.ran().count("g") == 2
    assert tool.inputs == [] and world.model_saw().count("mind the gap") >= 2
    first_request = world.kit.model.requests[0]["messages"]
    assert "mind the gap" in str(first_request[0]), "the context of the first prompt stands where it stood"


async def test_a_subagent_does_not_watch_files_a_second_time(world: World) -> None:
    world.settings(hooks=world.hooks("FileChanged", "true", matcher="a"))
    session = world.start()
    session.agent_id, session.agent_type = "1", "Explore"
    await world.fire(session, EVENTS["PreToolUse"], **PRE)
    assert session.plugin_state["command-hooks"]._watcher is None


# -- what somebody else shows ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("print_mode", "written"), [(False, ["\x07"]), (True, [])])
async def test_only_an_interactive_session_writes_to_a_terminal(world: World, print_mode: bool, written: list[str]) -> None:
    world.trust()
    world.settings(hooks=world.hooks("Stop", world.handler("a", json_out={"terminalSequence": "\x07"})))
    session = world.start(print_mode=print_mode)
    got: list[str] = []
    session.plugin_state["hooks.terminal"] = got.append
    await world.fire(session, EVENTS["Stop"], stop_hook_active=True)
    assert got == written
