"""What holds for the conversation holds inside every agent: rules, hooks, modes, directories, answers, the sandbox."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kernel import Decision, PermissionRequestResult, PreToolUseResult
from kernel.testing import alive, call, module, plugin_folder, text

from .agent_world import SCOUT, World, agent

pytestmark = pytest.mark.anyio
NEST = {"direct": ["Do it."], "nested": ["Outer.", "Do it."], "deep": ["Outer.", "Middle.", "Do it."]}


@pytest.fixture
def scout(world: World) -> World:
    world.write(".claude/agents/scout.md", SCOUT)
    return world


def chain(words: list[str], work: Any, background: bool) -> tuple[list[Any], dict[str, list[Any]]]:
    """Scripts in which each conversation starts the next, and the last does the work."""
    routes: dict[str, list[Any]] = {word: [agent(after, f"t-{after}", background=background), text("r"), text("r")]
                                    for word, after in itertools.pairwise(words)}
    routes[words[-1]] = [work, text("report")]
    return [agent(words[0], "t-first", background=background), text("done"), text("ok"), text("ok"), text("ok")], routes


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("shape", sorted(NEST))
@pytest.mark.parametrize("guard", ["deny rule", "cli deny", "hook", "command hook", "plan", "dontAsk", "nobody to ask"])
async def test_no_way_around_a_guard_through_agents(guard: str, shape: str, background: bool, scout: World) -> None:
    """A command that the guard stops in the conversation is stopped at every depth, waited for or not."""
    settings: dict[str, Any] = {"permissions": {"allow": ["Bash(touch *)", "Agent"]}}
    more: dict[str, Any] = {}
    if guard == "deny rule":
        settings["permissions"]["deny"] = ["Bash(touch *)"]
    elif guard == "cli deny":
        more["disallowed_tools"] = ["Bash(touch *)"]
    elif guard == "hook":
        refuse = PreToolUseResult(permission_decision="deny", permission_decision_reason="no")
        more["hooks"] = {"g": module(pre_tool_use=lambda event: refuse if event.tool_name == "Bash" else None)}
    elif guard == "command hook":
        settings["hooks"] = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "exit 2"}]}]}
    elif guard == "plan":
        more["permission_mode"] = "plan"
        settings["permissions"]["allow"] = ["Agent"]
    elif guard == "dontAsk":
        more["permission_mode"] = "dontAsk"
        settings["permissions"]["allow"] = ["Agent"]
    else:
        settings = {}
    made = scout.root / "made.txt"
    turns, routes = chain(NEST[shape], call("Bash", "toolu_b", command=f"touch {made}"), background)
    await scout.run(turns, routes, settings=settings, **more)
    await scout.settle()
    assert "Do it." in scout.model.by_route, "the agent ran"
    assert "toolu_b" in scout.told("Do it."), "it tried"
    assert not made.exists()


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("shape", sorted(NEST))
async def test_the_same_chain_does_the_work_where_nothing_stands_in_its_way(shape: str, background: bool, scout: World) -> None:
    made = scout.root / "made.txt"
    turns, routes = chain(NEST[shape], call("Bash", command=f"touch {made}"), background)
    await scout.run(turns, routes, settings={"permissions": {"allow": ["Bash(touch *)"]}})
    await scout.settle()
    assert made.exists()


async def test_a_fork_does_not_escape_either(scout: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_FORK_SUBAGENT", "1")
    made = scout.root / "made.txt"
    await scout.run([agent("Your part.", type="fork"), text("done"), text("ok")], {
        "Your part.": [call("Bash", "b", command=f"touch {made}"), text("x")]},
        settings={"permissions": {"deny": ["Bash(touch *)"]}}, permission_mode="bypassPermissions")
    await scout.settle()
    assert "Your part." in scout.model.by_route and not made.exists()


async def test_hooks_inside_get_the_agents_id_and_type_and_the_main_transcript(scout: World) -> None:
    seen: list[Any] = []
    hooks = module(pre_tool_use=lambda event: seen.append(event), subagent_stop=lambda event: seen.append(event))
    await scout.run([agent("Look."), text("done")], {"Look.": [call("Glob", pattern="*"), text("x")]}, persist=True,
                    more=("sessions",), hooks={"h": hooks})
    main, inside, stop = seen
    assert main.agent_id is None and inside.agent_type == "scout" and inside.agent_id == stop.agent_id
    assert inside.transcript_path == main.transcript_path == stop.transcript_path
    assert stop.agent_transcript_path.endswith(f"/subagents/agent-{stop.agent_id}.jsonl") and stop.last_assistant_message == "x"


async def test_start_and_stop_events_match_by_agent_and_context_reaches_the_agent(scout: World) -> None:
    scout.agent("other")
    answer = json.dumps({"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "mind the gap"}})
    log = scout.root / "log"

    def hook(command: str, matcher: str = "") -> list[Any]:
        return [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]

    settings = {"hooks": {"SubagentStart": hook(f"echo '{answer}'", "scout"), "Stop": hook(f"echo main >> {log}"),
                          "SubagentStop": hook(f"echo other >> {log}", "other")}}
    await scout.run([[agent("Look.", "a"), agent("Listen.", "b", type="other")], text("done")],
                    {"Look.": [text("1")], "Listen.": [text("2")]}, settings=settings)
    assert "mind the gap" in scout.told("Look.") and "mind the gap" not in scout.told("Listen.")
    assert log.read_text() == "other\nmain\n"


# -- hooks of the definition -------------------------------------------------------------------------------------------
async def test_hooks_of_the_front_matter_hold_for_that_agent_and_its_agents_only(world: World) -> None:
    log = world.root / "log"
    world.write(".config/agents/careful.md", f"""---
name: careful
description: Careful.
hooks:
  PreToolUse:
    - matcher: Bash
      hooks:
        - type: command
          command: exit 2
  Stop:
    - hooks:
        - type: command
          command: echo stop >> {log}
---
You are careful.
""")
    world.write(".claude/agents/scout.md", SCOUT)
    turns = [agent("Outer.", type="careful"), call("Bash", "m", command="touch main"), text("done")]
    routes = {"Outer.": [call("Bash", command="touch outer"), agent("Inner.", "i"), text("r")],
              "Inner.": [call("Bash", command="touch inner"), text("r")]}
    await world.run(turns, routes, settings={"permissions": {"allow": ["Bash(touch *)"]}})
    made = {n for n in ("main", "outer", "inner") if (world.root / n).exists()}
    assert made == {"main"}, "the guard holds in the agent and in what it starts, and nowhere else"
    assert log.read_text() == "stop\n", "the end of the inner agent is not the end of the outer one"


async def test_hooks_of_a_projects_agent_wait_for_trust_in_the_folder(world: World) -> None:
    world.agent("scout", hooks={"PreToolUse": [{"hooks": [{"type": "command", "command": "touch ran; exit 0"}]}]})
    await world.run([agent("Look."), text("done")], {"Look.": [call("Glob", pattern="*"), text("r")]})
    assert not (world.root / "ran").exists() and "r" in world.result("toolu_1")


async def test_hooks_without_the_plugin_that_runs_them_are_announced(world: World) -> None:
    world.agent("scout", hooks={"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 2"}]}]})
    await world.run([agent("Look."), text("done")], {"Look.": [text("x")]}, without=("command-hooks",))
    assert world.kit is not None and any("none of them runs" in t for t in world.kit.harness.announced)


# -- questions ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("background", [False, True])
async def test_questions_name_the_agent_and_a_lasting_answer_counts_for_all(background: bool, scout: World) -> None:
    rule = [{"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "touch *"}], "behavior": "allow",
             "destination": "session"}]
    asked: list[str | None] = []

    async def asker(question: Any, verdict: Any, call_id: str) -> dict[str, Any]:
        asked.append(question.agent_id)
        return {"behavior": "allow", "updatedPermissions": rule}

    work = {"Look.": [call("Bash", command="touch one"), text("r")], "Again.": [call("Bash", command="touch two"), text("r")]}
    scout.open([agent("Look.", background=background), text("x"), text("y"), text("z"), text("z")], work)
    scout.session.asker = asker
    await scout.go("Start.")
    await scout.settle()
    scout.model.turns = [agent("Again.", "t2"), call("Bash", "m", command="touch three"), text("done")]
    await scout.go("More.")
    assert [a is not None for a in asked] == [True], "asked once, by an agent"
    assert all((scout.root / n).exists() for n in ("one", "two", "three"))


async def test_a_permission_request_hook_answers_for_an_agent_in_the_background(scout: World) -> None:
    seen: list[str | None] = []

    def answer(event: Any) -> Any:
        seen.append(event.agent_id)
        return PermissionRequestResult(permission=Decision(behavior="allow"))

    await scout.run([agent("Look.", background=True), text("a"), text("b")],
                    {"Look.": [call("Bash", command="touch one"), text("r")]}, hooks={"h": module(permission_request=answer)})
    await scout.settle()
    assert (scout.root / "one").exists() and seen and seen[0] is not None


# -- modes and directories ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("parent", "wanted", "edits"), [
    ("default", None, False), ("default", "acceptEdits", True), ("acceptEdits", "plan", True), ("acceptEdits", None, True),
    ("bypassPermissions", "plan", True), ("plan", "acceptEdits", False), ("plan", "bypassPermissions", False),
    ("dontAsk", None, False), ("default", "dontAsk", False), ("default", "bypassPermissions", True)])
async def test_the_mode_of_an_agent(parent: str, wanted: str | None, edits: bool, world: World) -> None:
    world.agent("scout", **({"permissionMode": wanted} if wanted else {}))
    settings = {"permissions": {"allow": ["Agent"]}}
    await world.run([agent("Write it."), text("done")], {
        "Write it.": [call("Write", file_path=str(world.root / "new.txt"), content="x"), text("r")]},
        permission_mode=parent, settings=settings)
    assert (world.root / "new.txt").exists() is edits
    assert world.session.state.permission_mode == parent


async def test_an_untrusted_projects_agent_cannot_widen_its_rights(world: World) -> None:
    world.agent("scout", permissionMode="bypassPermissions")
    world.open([agent("Write it."), text("done")], {
        "Write it.": [call("Write", file_path=str(world.root / "new.txt"), content="x"), text("r")]})
    assert world.kit is not None
    world.kit.harness.settings.trusted = False
    await world.go("Start.")
    assert not (world.root / "new.txt").exists()
    assert any("has not been trusted" in notice["content"] for notice in world.said("informational"))


async def test_bypass_that_is_switched_off_stays_off(world: World) -> None:
    world.agent("scout", permissionMode="bypassPermissions")
    await world.run([agent("Write it."), text("done")], {
        "Write it.": [call("Write", file_path=str(world.root / "new.txt"), content="x"), text("r")]},
        settings={"permissions": {"disableBypassPermissionsMode": "disable"}})
    assert not (world.root / "new.txt").exists()


async def test_directories_of_the_session_are_the_agents_and_no_others(scout: World, tmp_path: Path) -> None:
    added, other = tmp_path / "added", tmp_path / "other"
    for folder in (added, other):
        folder.mkdir()
        (folder / "f.txt").write_text(f"in {folder.name}")
    reads = [call("Read", file_path=str(added / "f.txt")), call("Read", file_path=str(other / "f.txt"))]
    await scout.run([agent("Look."), text("done")], {"Look.": [reads, text("r")]}, add_dirs=[added])
    assert "in added" in scout.told("Look.") and "in other" not in scout.told("Look.")


async def test_rules_about_types_deny_and_hide(world: World) -> None:
    for name in ("scout", "poet"):
        world.agent(name)
    settings = {"permissions": {"deny": ["Agent(poet)"]}}
    await world.run([[agent("Look.", "a"), agent("Write.", "b", type="Poet")], text("done")], {
        "Look.": [text("seen")], "Write.": [text("verse")]}, settings=settings)
    assert "seen" in world.result("a") and "verse" not in world.result("b") and "Write." not in world.model.by_route
    assert "- scout" in world.told("", 0) and "- poet" not in world.told("", 0)


@pytest.mark.parametrize("rule", ["Agent(demo:scout)", "Task(demo:scout)"])
async def test_a_plugins_agent_can_be_denied_by_its_full_name(rule: str, world: World, tmp_path: Path) -> None:
    files = {"agents/scout.md": SCOUT, "agents/poet.md": SCOUT.replace("scout", "poet")}
    plugin = plugin_folder(tmp_path / "demo", "demo", files)
    await world.run([[agent("Look.", "a", type="demo:scout"), agent("Write.", "b", type="demo:poet")], text("done")],
                    {"Look.": [text("seen")], "Write.": [text("verse")]}, settings={"permissions": {"deny": [rule]}},
                    plugin_dirs=[plugin])
    assert "Look." not in world.model.by_route and "verse" in world.result("b")
    assert "- demo:scout" not in world.told("", 0) and "- demo:poet" in world.told("", 0)


async def test_a_bare_deny_takes_the_tool_away_under_both_names(scout: World) -> None:
    for name in ("Agent", "Task"):
        await scout.run([text("hi")], settings={"permissions": {"deny": [name]}})
        assert "Agent" not in scout.tools("") and "- scout" not in scout.told()
        await scout.session.close()


@pytest.mark.parametrize(("rules", "runs"), [([], False), (["Agent"], True), (["Task(scout)"], True), (["Agent(other)"], False)])
async def test_without_questions_an_agent_needs_a_rule(rules: list[str], runs: bool, scout: World) -> None:
    await scout.run([agent("Look."), text("done")], {"Look.": [text("seen")]}, permission_mode="dontAsk",
                    settings={"permissions": {"allow": rules}})
    assert ("Look." in scout.model.by_route) is runs


async def test_a_grant_of_a_fork_skill_is_the_agents_alone(scout: World) -> None:
    scout.open([text("done")], {"Look.": [call("Bash", command="touch one"), text("r")],
                                "Again.": [call("Bash", command="touch two"), text("r")]})
    await scout.go("Start.")
    runner = scout.session.agents
    assert runner is not None
    await runner.run(scout.session, prompt="Look.", agent_type="scout", background=False, grants=("Bash(touch *)",))
    await runner.run(scout.session, prompt="Again.", agent_type="scout", background=False)
    assert (scout.root / "one").exists() and not (scout.root / "two").exists() and scout.session.state.grants == ()


async def test_grants_of_the_parents_turn_are_not_the_agents(scout: World) -> None:
    import msgspec

    scout.open([text("done")], {"Look.": [call("Bash", command="touch one"), text("r")]})
    await scout.go("Start.")
    scout.session.state = msgspec.structs.replace(scout.session.state, grants=("Bash(touch *)",))
    runner = scout.session.agents
    assert runner is not None
    await runner.run(scout.session, prompt="Look.", agent_type="scout", background=False)
    assert not (scout.root / "one").exists()


@pytest.mark.skipif(shutil.which("bwrap") is None or os.environ.get("KERNEL_NO_BWRAP") == "1", reason="bubblewrap is not there")
async def test_the_sandbox_confines_agents_too(scout: World, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    settings = {"sandbox": {"enabled": True}, "permissions": {"allow": ["Bash"]}}
    try:
        await scout.run([agent("Look."), text("done")], {
            "Look.": [call("Bash", command=f"touch {outside}; touch inside.txt"), text("r")]},
            settings=settings, more=("sandbox",))
    except Exception as error:
        pytest.skip(f"the sandbox cannot work here: {error}")
    assert not outside.exists() and (scout.root / "inside.txt").exists()


# -- what an agent does not get -----------------------------------------------------------------------------------------
async def test_files_that_the_parent_read_are_unread_for_the_agent(scout: World) -> None:
    path = scout.write("a.txt", "old\n")
    await scout.run([call("Read", file_path=str(path)), agent("Edit it."), text("done")], {
        "Edit it.": [call("Edit", "e", file_path=str(path), old_string="old", new_string="new"), text("r")]},
        permission_mode="acceptEdits")
    assert path.read_text() == "old\n" and str(path) in scout.session.read_files


async def test_a_cd_of_an_agent_moves_nobody(scout: World) -> None:
    (scout.root / "sub").mkdir()
    await scout.run([agent("Go."), call("Bash", "m", command="pwd"), text("done")], {
        "Go.": [call("Bash", "b", command="cd sub"), call("Bash", "c", command="pwd"), text("r")]})
    assert scout.session.state.cwd == str(scout.root) and scout.result("m").strip() == str(scout.root)


async def test_commands_that_an_agent_left_behind_end_with_it(scout: World) -> None:
    pid = scout.root / "pid"
    work = [call("Bash", command=f"echo $$ > {pid}; sleep 60", run_in_background=True),
            call("Bash", command=f"until test -s {pid}; do sleep 0.05; done"), text("r")]
    await scout.run([agent("Go."), text("done")], {"Go.": work}, permission_mode="bypassPermissions")
    number = int(pid.read_text())
    await scout.until(lambda: not alive(number))
    assert scout.session.background_tasks == {}
