"""Which handlers take part: sources, policy, duplicates, files that cannot be used (hooks contract, sections 2 and 3)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from kernel_command_hooks import plugin_files
from kernel_command_hooks.hooks import SOURCES, STATE

from kernel import EVENTS
from kernel.testing import call, text

pytestmark = pytest.mark.anyio

STOP = EVENTS["Stop"]
PRE = EVENTS["PreToolUse"]


async def stop(world: Any, session: Any) -> list[str]:
    """Ids that ran at the end of a turn."""
    await world.fire(session, STOP, stop_hook_active=False)
    return sorted(world.ran())


def scope_hooks(world: Any, *scopes: str) -> None:
    for scope in scopes:
        world.settings(scope, hooks=world.hooks("Stop", world.handler(scope)))


ALL = ("managed", "flag", "local", "project", "user")


async def test_hooks_of_all_scopes_add_up_in_the_order_of_precedence(world: Any) -> None:
    scope_hooks(world, *ALL)
    world.plugin("p", {"hooks/hooks.json": {"hooks": world.hooks("Stop", world.handler("plugin"))}})
    session = world.start()
    assert await stop(world, session) == sorted([*ALL, "plugin"])
    labels = [h.label.split("]")[0] + "]" for h in session.plugin_state[STATE].handlers["Stop"]]
    assert labels == ["[Managed]", "[Flag]", "[Local]", "[Project]", "[User]", "[Plugin]"]


@pytest.mark.parametrize(("settings", "runs"), [
    ({"user": {"disableAllHooks": True}}, ["forced", "managed"]),
    # until the folder is trusted its switch is for its own hooks
    ({"project": {"disableAllHooks": True}}, ["flag", "forced", "managed", "plugin", "user"]),
    ({"managed": {"disableAllHooks": True}}, []),
    ({"user": {"disableAllHooks": True}, "project": {"disableAllHooks": False}}, [*ALL, "forced", "plugin"]),
    ({"managed": {"disableAllHooks": False}, "project": {"disableAllHooks": True}}, [*ALL, "forced", "plugin"]),
    ({"managed": {"allowManagedHooksOnly": True}}, ["forced", "managed"]),
    ({"managed": {"allowManagedHooksOnly": "yes"}}, ["forced", "managed"]),
    ({"project": {"allowManagedHooksOnly": True}}, [*ALL, "forced", "plugin"]),
    ({"managed": {"strictPluginOnlyCustomization": ["hooks"]}}, ["flag", "forced", "managed", "plugin"]),
    ({"managed": {"strictPluginOnlyCustomization": True}}, ["flag", "forced", "managed", "plugin"]),
    ({"managed": {"strictPluginOnlyCustomization": ["mcp"]}}, [*ALL, "forced", "plugin"]),
])
async def test_policy_decides_whose_hooks_run(world: Any, settings: dict[str, dict[str, Any]], runs: list[str]) -> None:
    for scope in ALL:
        more = settings.get(scope, {})
        forced = {"enabledPlugins": {"vetted@corp": True}} if scope == "managed" else {}
        world.settings(scope, hooks=world.hooks("Stop", world.handler(scope)), **more, **forced)
    world.plugin("vetted", {"hooks/hooks.json": {"hooks": world.hooks("Stop", world.handler("forced"))}}, "corp")
    world.plugin("other", {"hooks/hooks.json": {"hooks": world.hooks("Stop", world.handler("plugin"))}}, "corp")
    assert await stop(world, world.start()) == sorted(runs)


@pytest.mark.parametrize(("options", "runs"), [
    ({"extra": {"bare": True}}, ["flag", "managed", "plugin"]), ({"extra": {"safe_mode": True}}, ["managed"]),
    ({"print_mode": False}, ["plugin"]), ({"setting_sources": ("user",)}, ["flag", "managed", "plugin", "user"])])
async def test_options_of_the_run_decide_too(world: Any, options: dict[str, Any], runs: list[str]) -> None:
    """``print_mode: False`` is an interactive session in a folder that nobody trusted yet."""
    scope_hooks(world, *ALL)
    world.plugin("p", {"hooks/hooks.json": {"hooks": world.hooks("Stop", world.handler("plugin"))}})
    assert await stop(world, world.start(**options)) == runs


# -- duplicates --------------------------------------------------------------------------------------------------------
async def test_the_same_handler_runs_once_over_all_settings_files(world: Any) -> None:
    same = world.handler("same")
    for scope in ALL:
        world.settings(scope, hooks=world.hooks("Stop", same, same))
    assert await stop(world, world.start()) == ["same"]


@pytest.mark.parametrize(("difference", "runs"), [
    ({"timeout": 5}, 1), ({"statusMessage": "x"}, 1), ({"shell": "bash"}, 2), ({"args": []}, 2)])
async def test_only_what_is_executed_makes_a_difference(world: Any, difference: dict[str, Any], runs: int) -> None:
    one = {"type": "command", "command": world.handler("one")}
    world.settings(hooks=world.hooks("Stop", one, {**one, **difference}))
    assert len(await stop(world, world.start())) == runs


async def test_the_copy_of_the_highest_scope_counts(world: Any) -> None:
    one = {"type": "command", "command": "sleep 60"}
    world.settings("user", hooks=world.hooks("Stop", {**one, "timeout": 600}))
    world.settings("local", hooks=world.hooks("Stop", {**one, "timeout": 0.1}))
    session = world.start()
    await world.fire(session, STOP, stop_hook_active=False)
    assert "timed out after 0.1 s" in world.notices()[0]


async def test_copies_of_plugins_stay_separate(world: Any) -> None:
    same = world.handler("same")
    world.settings(hooks=world.hooks("Stop", same))
    for name in ("a", "b"):
        world.plugin(name, {"hooks/hooks.json": {"hooks": world.hooks("Stop", same)}})
    assert await stop(world, world.start()) == ["same"] * 3


async def test_two_groups_of_one_file_that_both_match_count_as_one(world: Any) -> None:
    same = {"type": "command", "command": world.handler("same")}
    world.settings(hooks={"PreToolUse": [{"matcher": "Bash", "hooks": [same]}, {"matcher": "*", "hooks": [same]}]})
    session = world.start()
    await world.fire(session, PRE, tool_name="Bash", tool_input={}, tool_use_id="i")
    assert world.ran() == ["same"]


# -- configuration that does not work ----------------------------------------------------------------------------------
@pytest.mark.parametrize(("hooks", "says", "guard"), [
    ({"PreCommit": [{"hooks": [{"type": "command", "command": "a"}]}]}, "hooks.PreCommit", True),
    ({"preToolUse": [{"hooks": [{"type": "command", "command": "a"}]}]}, "did you mean PreToolUse", True),
    ({"SessionStart": [{"hooks": [{"type": "prompt", "prompt": "p"}]}]}, "command, mcp_tool, not prompt", True),
    ({"Setup": [{"hooks": [{"type": "http", "url": "http://localhost:9/h"}]}]}, "command, mcp_tool, not http", True),
    ({"Stop": [{"hooks": [{"type": "command", "command": "a", "if": "Bash(git *)"}]}]}, "a handler with 'if' never runs", True),
    ({"PreToolUse": [{"matcher": "[invalid", "hooks": [{"type": "command", "command": "a"}]}]}, "matches nothing", True),
    ({"PreToolUse": [{"hooks": [{"type": "command", "command": "a b", "args": []}]}]}, "one program name with white space", True),
    ({"PreToolUse": [{"hooks": [{"type": "command", "command": "a", "args": "x"}]}]}, "hooks[0].args", True),
    ({"Elicitation": [{"hooks": [{"type": "command", "command": "a", "async": True}]}]}, "the result of Elicitation is", False),
    ({"Stop": [{"hooks": [{"type": "command", "command": "a", "async": True, "onFailure": "block"}]}]}, "nobody waits", True),
    ({"SubagentStart": [{"matcher": "[invalid", "hooks": [{"type": "command", "command": "a"}]}]}, "", False),
    ({"Stop": [{"matcher": "[invalid", "hooks": [{"type": "command", "command": "a"}]}]}, "", False),
])
async def test_what_cannot_work_is_announced_with_its_place(world: Any, hooks: dict[str, Any], says: str, guard: bool) -> None:
    path = world.settings(hooks=hooks)
    session = world.start()
    await world.fire(session, STOP, stop_hook_active=True)
    told = [n for n in world.notices() if "hook error" not in n]
    assert bool(told) is bool(says)
    if says:
        assert says in told[0] and (str(path) in told[0] or "not available" in told[0])
        assert (told[0] in session.harness.announced) is guard


async def test_the_rest_of_a_file_with_an_unknown_event_counts(world: Any) -> None:
    world.settings(hooks={"PreCommit": [{"hooks": []}], **world.hooks("Stop", world.handler("s"))})
    assert await stop(world, world.start()) == ["s"]


async def test_a_handler_that_cannot_be_read_refuses_where_it_has_to(world: Any) -> None:
    broken = {"type": "command", "command": "a", "args": 5, "onFailure": "block"}
    world.settings(hooks=world.hooks("PreToolUse", broken))
    merged = await world.fire(world.start(), PRE, tool_name="Bash", tool_input={}, tool_use_id="i")
    assert merged.decision == "deny" and "set to refuse" in merged.reason


async def test_a_handler_type_that_is_not_available_refuses_where_it_has_to(world: Any) -> None:
    world.settings(hooks=world.hooks("PreToolUse", {"type": "prompt", "prompt": "p", "onFailure": "block"}))
    merged = await world.fire(world.start(), PRE, tool_name="Bash", tool_input={}, tool_use_id="i")
    assert merged.decision == "deny"


# -- plugins -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("content", "told"), [
    ("[]", False), ("{}", False), ("{broken", True), ('{"Stop": []}', True), ('[{"event": "Stop", "command": "x"}]', True),
    ('{"hooks": []}', True), ('{"hooks": {"Stop": [{"type": "command", "command": "x"}]}}', True),
    ('{"hooks": {"Stop": [{"hooks": [{"type": "nonsense"}]}]}}', True), ('{"hooks": {}}', False),
    ('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a", "timeout": "5"}]}]}}', True),
])
async def test_a_plugin_file_that_cannot_be_used_registers_nothing_and_is_named(world: Any, content: str, told: bool) -> None:
    world.plugin("p", {"hooks/hooks.json": content})
    session = world.start()
    await stop(world, session)
    assert not session.plugin_state[STATE].handlers
    assert any("plugin p" in t for t in session.harness.announced) is told
    assert bool(world.plugins[0].warnings) is (content in ("[]", "{}"))


async def test_one_bad_handler_costs_all_hooks_of_a_plugin_file(world: Any) -> None:
    bad = {"type": "command", "command": "x", "args": "no list"}
    hooks = {**world.hooks("Stop", world.handler("s")), **world.hooks("PreToolUse", bad)}
    world.plugin("p", {"hooks/hooks.json": {"hooks": hooks}})
    session = world.start()
    assert await stop(world, session) == []
    assert any("hooks.PreToolUse[0].hooks[0].args" in t for t in session.harness.announced)


@pytest.mark.parametrize(("declared", "runs"), [
    ("./hooks/hooks.json", ["default"]), (["./hooks/hooks.json", "./more.json"], ["default", "more"]),
    ("./more.json", ["default", "more"]), ("./../outside.json", ["default"]), ("/etc/passwd", ["default"]),
    ("./missing.json", ["default"]), ("./link.json", ["default"])])
async def test_files_named_in_the_manifest_are_read_once_and_only_inside(world: Any, declared: Any, runs: list[str]) -> None:
    more = {"hooks": world.hooks("Stop", world.handler("more"))}
    root = world.plugin("p", {"hooks/hooks.json": {"hooks": world.hooks("Stop", world.handler("default"))}, "more.json": more,
                              "../outside.json": {"hooks": world.hooks("Stop", world.handler("outside"))}}, hooks=declared)
    os.symlink(root.parent / "outside.json", root / "link.json")
    session = world.start()
    assert await stop(world, session) == runs
    harmless = declared in ("./hooks/hooks.json", "./more.json") or isinstance(declared, list)
    assert any("plugin p" in t for t in session.harness.announced) is not harmless


@pytest.mark.parametrize("wrapped", [True, False])
async def test_an_inline_object_counts_with_and_without_its_wrapper(world: Any, wrapped: bool) -> None:
    hooks = world.hooks("Stop", world.handler("inline"))
    world.plugin("p", {}, hooks={"hooks": hooks} if wrapped else hooks)
    assert await stop(world, world.start()) == ["inline"]


async def test_unknown_keys_are_ignored_everywhere(world: Any) -> None:
    handler = {"type": "command", "command": world.handler("s"), "id": 1, "priority": 3, "rewakeMessage": "m"}
    world.plugin("p", {"hooks/hooks.json": {"version": 1, "author": "x", "hooks": {"Stop": [{"hooks": [handler], "if": 5}]}}})
    assert await stop(world, world.start()) == ["s"]


def test_all_published_hooks_files_are_read_without_a_crash() -> None:
    shared = Path(os.environ.get("KERNEL_SHARED", Path(__file__).parents[4] / "shared")) / "corpus"
    if not shared.is_dir():
        pytest.skip(f"the corpus of published plugins is not at {shared}")
    files = sorted(shared.rglob("hooks.json"))
    assert len(files) > 50
    for path in files:
        found = plugin_files.Found()
        plugin_files._file(path, found)
        assert found.maps or found.faults or found.remarks, path


# -- changes while the session runs ------------------------------------------------------------------------------------
async def test_new_settings_count_at_the_next_event(world: Any) -> None:
    session = world.start()
    assert await stop(world, session) == []
    world.settings(hooks=world.hooks("Stop", world.handler("new")))
    session.harness.settings = world.read_settings()
    assert await stop(world, session) == ["new"]


async def test_hooks_of_a_skill_run_while_its_entry_stands_and_once_means_once(world: Any) -> None:
    session = world.start()
    once = {"type": "command", "command": world.handler("once"), "once": True}
    entry = {"label": "skill secure", "skill": True, "hooks": world.hooks("Stop", once, world.handler("always"))}
    session.plugin_state[SOURCES] = [entry]
    await stop(world, session)
    assert await stop(world, session) == ["always", "always", "once"]
    session.plugin_state[SOURCES].remove(entry)
    assert len(await stop(world, session)) == 3


async def test_once_is_ignored_in_settings(world: Any) -> None:
    world.settings(hooks=world.hooks("Stop", {"type": "command", "command": world.handler("s"), "once": True}))
    session = world.start()
    await stop(world, session)
    assert await stop(world, session) == ["s", "s"]


async def test_a_stop_hook_of_a_subagent_is_one_for_its_own_stop(world: Any) -> None:
    session = world.start()
    session.plugin_state[SOURCES] = [{"label": "agent r", "subagent": True, "hooks": world.hooks("Stop", world.handler("s"))}]
    assert await stop(world, session) == []
    await world.fire(session, EVENTS["SubagentStop"], stop_hook_active=False, agent_transcript_path="/t", agent_id="1",
                     agent_type="r")
    assert world.ran() == ["s"] and world.inputs("s")[0]["hook_event_name"] == "SubagentStop"


async def test_old_names_of_a_tool_match(world: Any, echo: Any) -> None:
    world.settings(hooks=world.hooks("PreToolUse", world.handler("a"), matcher="Task"))
    world.start([call("Agent", prompt="x"), text("done")], tools=[echo("Agent", aliases=("Task",))])
    await world.prompt()
    assert world.inputs("a")[0]["tool_name"] == "Agent"


async def test_a_rule_that_cannot_be_evaluated_lets_the_handler_run(world: Any) -> None:
    handler = {"type": "command", "command": world.handler("a"), "if": "Bash((("}
    world.settings(hooks=world.hooks("PreToolUse", handler))
    session = world.start()
    session.policy.matches = lambda rule, name, input: 1 / 0
    await world.fire(session, PRE, tool_name="Bash", tool_input={}, tool_use_id="i")
    assert world.ran() == ["a"]
