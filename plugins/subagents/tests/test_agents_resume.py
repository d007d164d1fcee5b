"""Agents that go on: messages, the next process, forks; the conversation as an agent; memory, skills."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from kernel import Harness, ModelError, Options, SystemMessage, UsageError
from kernel.testing import call, plugin_folder, text
from kernel.testing.scripted import Turn

from .agent_world import SCOUT, Gate, World, agent

pytestmark = pytest.mark.anyio


@pytest.fixture
def scout(world: World) -> World:
    world.write(".claude/agents/scout.md", SCOUT)
    return world


def first_id(world: World) -> str:
    return str(world.said("task_started")[0]["task_id"])


# -- messages ------------------------------------------------------------------------------------------------------------
async def test_a_finished_agent_goes_on_with_all_it_knows_under_its_id(scout: World) -> None:
    path = scout.write("a.txt", "an oak\n")
    turns = [agent("Look."), lambda body: call("SendMessage", "s", to=first_id(scout), message="And birds?"), text("a"),
             text("b")]
    await scout.run(turns, {"Look.": [call("Read", file_path=str(path)), text("One tree."), text("Two birds.")]})
    await scout.settle()
    last = scout.told("Look.")
    assert "an oak" in last and "One tree." in last and "And birds?" in last
    assert "Two birds." in scout.told() and {m["task_id"] for m in scout.said("task_started")} == {first_id(scout)}
    assert scout.said("task_started")[1]["is_backgrounded"] is True


async def test_a_running_agent_reads_a_message_before_its_next_request(scout: World) -> None:
    gate, other = Gate(), Gate()
    other.name = "Other"  # type: ignore[misc]

    def let_go(body: Any) -> Any:
        gate.open.set()
        return text("a")

    async def when_it_works() -> None:
        await scout.until(lambda: bool(gate.waiting))
        other.open.set()

    send = call("SendMessage", "s", to="eyes", message="Mind the birds.")
    scout.open([agent("Look.", background=True, name="eyes"), call("Other"), send, let_go, text("b")],
               {"Look.": [call("Gate"), text("seen")]}, tools=[gate, other])
    async with anyio.create_task_group() as group:
        group.start_soon(when_it_works)
        await scout.go("Start.")
    await scout.settle()
    assert "is running" in scout.result("s")
    assert "Mind the birds." in scout.told("Look.") and "not the user's" in scout.told("Look.")


async def test_whom_a_message_does_not_reach(scout: World) -> None:
    turns = [[agent("Look.", "a", name="eyes"), agent("Look.", "b", name="eyes"), agent("Search.", "c", type="Explore")],
             lambda body: [call("SendMessage", "s1", to="eyes", message="x"), call("SendMessage", "s2", to="nobody", message="x"),
                           call("SendMessage", "s3", to=str(scout.said("task_started")[2]["task_id"]), message="x"),
                           call("SendMessage", "s4", to="eyes", message=" ")], text("done")]
    await scout.run(turns, {"Look.": [text("1"), text("2")], "Search.": [text("3")]})
    second = str(scout.said("task_started")[1]["task_id"])
    assert f"now belongs to the agent {second}" in scout.result("s1")
    assert "No agent has the id or name 'nobody'" in scout.result("s2") and "Explore cannot be sent" in scout.result("s3")
    assert "blank" in scout.result("s4")


@pytest.mark.parametrize("by_user", [True, False])
async def test_an_agent_that_the_user_stopped_does_not_go_on_by_a_message(by_user: bool, scout: World) -> None:
    gate = Gate()
    scout.open([agent("Look.", background=True), text("a"), text("b")], {"Look.": [call("Gate"), text("went on")]}, tools=[gate])
    await scout.go("Start.")
    await scout.until(lambda: bool(gate.waiting))
    task = scout.session.plugin_state["tasks"][first_id(scout)]
    await (task.stop() if by_user else task.stop_for_model())
    await scout.settle()
    scout.model.turns = [call("SendMessage", "s", to=first_id(scout), message="Go on."), text("c"), text("d")]
    await scout.go("More.")
    await scout.settle()
    assert ("The user stopped" in scout.result("s")) is by_user and ("went on" in scout.told()) is not by_user


async def test_the_list_of_agents_that_can_be_reached(scout: World) -> None:
    await scout.run([[agent("Look.", name="eyes"), agent("Search.", "t2", type="Explore")], call("ListAgents", "l"), text("x")],
                    {"Look.": [text("1")], "Search.": [text("2")]})
    assert "eyes (scout): completed" in scout.result("l") and "Explore" not in scout.result("l")


async def test_an_agent_is_told_whom_it_may_write_to(scout: World) -> None:
    await scout.run([agent("Look.", name="eyes"), agent("Listen.", "t2"), text("done")],
                    {"Look.": [text("1")], "Listen.": [text("2")]})
    assert "- eyes (" not in scout.told("Look.") and "- eyes (" in scout.told("Listen.")


async def test_a_resumed_session_is_not_told_the_list_of_agents_twice(scout: World) -> None:
    kept = {"persist": True, "more": ("sessions",)}
    run = await scout.run([text("hi")], {}, **kept)
    await run.session.close()
    await scout.run([text("hi")], {}, resume=run.session.id, **kept)
    assert scout.told().count("Agents that the Agent tool can start") == 1


async def test_the_model_of_the_call_holds_when_it_goes_on(scout: World) -> None:
    turns = [agent("Look.", model="haiku"), lambda body: call("SendMessage", "s", to=first_id(scout), message="More."), text("a"),
             text("b")]
    await scout.run(turns, {"Look.": [text("1"), text("2")]})
    await scout.settle()
    assert [r["model"] for r in scout.model.by_route["Look."]] == ["haiku", "haiku"]


async def test_an_agent_compacts_its_own_history_and_nobody_elses(scout: World) -> None:
    said = "prompt is too long: 300000 tokens > 200000 maximum"
    too_long = Turn(fail=ModelError(said, status=400, kind="invalid_request_error"))
    reads = [[text("Looking."), call("Glob", pattern="*.none")] for _ in range(3)]
    # Behind the summary nothing tells whose request it is, so the report stands in the other script.
    await scout.run([agent("Look."), text("report"), text("done")],
                    {"Look.": [*reads, too_long, text("<summary>Short.</summary>")]}, more=("compactor",))
    assert "report" in scout.result("toolu_1") and "Short." in json.dumps(scout.model.requests[-2])
    assert "Short." not in scout.told()
    main = scout.session.history.wire()
    assert [m["role"] for m in main] == ["user", "assistant", "user", "assistant"]


# -- the next process ------------------------------------------------------------------------------------------------------
async def test_transcripts_lie_beside_the_sessions_and_an_agent_goes_on_in_the_next_process(scout: World) -> None:
    kept = {"persist": True, "more": ("sessions",)}
    run = await scout.run([agent("Look.", name="eyes"), text("done")],
                          {"Look.": [call("Glob", pattern="*"), text("One tree.")]}, **kept)
    agent_id, path = first_id(scout), Path(run.session.transcript.path)
    side = path.with_suffix("") / "subagents" / f"agent-{agent_id}.jsonl"
    lines = [json.loads(line) for line in side.read_text().splitlines()]
    assert all(e["isSidechain"] is True and e["agentId"] == agent_id and e["sessionId"] == run.session.id for e in lines)
    assert [e["parentUuid"] for e in lines] == [None, *(e["uuid"] for e in lines[:-1])]
    meta = json.loads(side.with_suffix(".meta.json").read_text())
    assert meta["agentType"] == "scout" and meta["toolUseId"] == "toolu_1" and meta["name"] == "eyes"
    assert "One tree." not in [json.loads(line).get("agentId") for line in path.read_text().splitlines()]
    assert not any(json.loads(line).get("isSidechain") for line in path.read_text().splitlines())
    await run.session.close()
    await scout.run([call("SendMessage", "s", to="eyes", message="And birds?"), text("a"), text("b")],
                    {"Look.": [text("Two birds.")]}, prompt="Ask the eyes.", resume=run.session.id, **kept)
    await scout.settle()
    assert "One tree." in scout.told("Look.") and "And birds?" in scout.told("Look.") and "Two birds." in scout.told()
    again = [json.loads(line) for line in side.read_text().splitlines()]
    assert again[: len(lines)] == lines and again[len(lines)]["parentUuid"] == lines[-1]["uuid"]


async def test_a_type_that_is_gone_cannot_go_on_in_the_next_process(scout: World) -> None:
    kept = {"persist": True, "more": ("sessions",)}
    run = await scout.run([agent("Look."), text("done")], {"Look.": [text("One tree.")]}, **kept)
    agent_id = first_id(scout)
    await run.session.close()
    (scout.root / ".claude" / "agents" / "scout.md").unlink()
    await scout.run([call("SendMessage", "s", to=agent_id, message="x"), text("a")], {}, resume=run.session.id, **kept)
    assert "cannot go on" in scout.result("s")


# -- forks -----------------------------------------------------------------------------------------------------------------
async def test_a_fork_knows_everything_and_its_first_request_reads_the_parents_cache(
        scout: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_FORK_SUBAGENT", "1")
    turns = [agent("Your part.", type="fork", background=None, model="haiku"), text("a"), text("b")]
    await scout.run(turns, {"Your part.": [agent("Deeper.", "d"), text("half")]}, prompt="The secret is 7.")
    await scout.settle()
    main, fork = scout.model.by_route[""][0], scout.model.by_route["Your part."][0]
    assert fork["system"] == main["system"] and fork["tools"] == main["tools"] and fork["model"] == main["model"]
    assert fork["messages"][0] == main["messages"][0]
    assert "A fork starts no agents" in scout.told("Your part.") and "half" in scout.told()


async def test_forks_are_there_in_sessions_with_a_person_or_on_request(scout: World) -> None:
    await scout.run([agent("x", type="fork"), text("done")], {})
    assert "There is no agent 'fork'" in scout.result("toolu_1")
    await scout.session.close()
    await scout.run([text("hi")], {}, print_mode=False)
    assert "- fork" in scout.told()


# -- the conversation as an agent --------------------------------------------------------------------------------------------
async def test_the_main_agent_has_the_prompt_tools_model_and_types_of_its_definition(world: World) -> None:
    world.agent("lead", "You lead.", tools="Agent(worker), Read", model="opus", initialPrompt="Begin.")
    world.agent("worker", tools="Bash")
    world.agent("other")
    turns = [[agent("Work.", "w", type="worker"), agent("Other.", "o", type="other")], text("done")]
    await world.run(turns, {"Work.": [call("Bash", command="touch made"), text("made it")], "Other.": [text("never")]},
                    extra={"agent": "lead"}, permission_mode="bypassPermissions")
    assert world.model.by_route[""][0]["system"][0]["text"].startswith("You lead.") and world.tools("") == ["Agent", "Read"]
    assert world.model.by_route[""][0]["model"] == "opus" and world.session.agent_type == "lead"
    assert world.session.initial_message == "Begin." and "- other" not in world.told("", 0)
    assert "made it" in world.result("w") and (world.root / "made").exists(), "its own list is not the workers'"
    assert "may not be started here" in world.result("o")


async def test_the_setting_names_a_main_agent_and_the_flag_beats_it(world: World) -> None:
    world.agent("one", "You are one.")
    world.agent("two", "You are two.")
    await world.run([text("hi")], {}, settings={"agent": "one"})
    assert "You are one." in world.told()
    await world.session.close()
    await world.run([text("hi")], {}, settings={"agent": "one"}, extra={"agent": "two"})
    assert "You are two." in world.told()
    await world.session.close()
    await world.run([text("hi")], {}, settings={"agent": "gone"})
    assert any("'gone' is not there" in n["content"] for n in world.said("informational"))


@pytest.mark.parametrize(("inline", "file", "user", "expected"), [
    ({"agent": "lead"}, None, None, "You lead."), (None, '{"agent": "demo:lead"}', None, "You lead."),
    ({"agent": "poet"}, '{"agent": "lead", "model": "x"}', None, "You lead."), (None, '{"agent": "lead"}', "mine", "Mine."),
    (None, '{"agent": "gone"}', None, None), (None, "{broken", None, None), (None, "[]", None, None)])
async def test_a_plugin_may_name_one_of_its_agents(inline: Any, file: str | None, user: str | None, expected: str | None,
                                                   world: World, tmp_path: Path) -> None:
    files: dict[str, Any] = {"agents/lead.md": "---\nname: lead\ndescription: d\n---\nYou lead.",
                             "agents/poet.md": "---\nname: poet\ndescription: d\n---\nVerse."}
    if file is not None:
        files["settings.json"] = file
    plugin = plugin_folder(tmp_path / "demo", "demo", files, **({"settings": inline} if inline else {}))
    world.agent("mine", "Mine.")
    await world.run([text("hi")], {}, plugin_dirs=[plugin], settings={"agent": user} if user else None)
    first = world.model.by_route[""][0]["system"][0]["text"]
    assert first.startswith(expected or "You are an agent that works for a person")


async def test_a_flag_that_names_no_agent_is_wrong_usage(world: World) -> None:
    """Nothing has begun: no model was asked, nothing was recorded."""
    with pytest.raises(UsageError, match=r"--agent: there is no agent 'nobody'.*general-purpose"):
        world.open([text("hi")], {}, extra={"agent": "nobody"})
    world.kit = None


async def test_a_program_that_brings_its_agents_later_is_told_when_the_session_opens(world: World) -> None:
    await world.run([text("hi")], {}, extra={"agent": "nobody"}, input_format="stream-json")
    assert world.kit is not None and any("the agent 'nobody' is not there" in t for t in world.kit.harness.announced)


async def test_hooks_of_a_projects_agent_wait_for_trust_when_it_is_the_main_one(world: World, tmp_path: Path) -> None:
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": f"touch {tmp_path / 'ran'}"}]}]}
    world.agent("lead", hooks=hooks)
    read = call("Read", file_path=str(world.agent("other")))
    for trusted in (False, True):
        world.open([read, text("done")], {}, extra={"agent": "lead"})
        world.session.settings.trusted = trusted
        await world.go("Start.")
        assert (tmp_path / "ran").exists() is trusted


async def test_a_resumed_session_is_the_agent_that_it_was(world: World) -> None:
    kept = {"persist": True, "more": ("sessions",)}
    world.agent("lead", "You lead.")
    run = await world.run([text("hi")], {}, extra={"agent": "lead"}, **kept)
    await run.session.close()
    await world.run([text("hi")], {}, resume=run.session.id, **kept)
    assert "You lead." in world.told()


async def test_stop_hooks_of_the_main_agent_stay_stop(world: World) -> None:
    log = world.root / "log"
    world.write(".config/agents/lead.md", "---\nname: lead\ndescription: d\nhooks:\n  Stop:\n    - hooks:\n"
                                          f"        - type: command\n          command: echo stop >> {log}\n---\nYou lead.\n")
    world.write(".claude/agents/scout.md", SCOUT)
    await world.run([agent("Look."), text("done")], {"Look.": [text("x")]}, extra={"agent": "lead"})
    assert log.read_text() == "stop\n"


# -- memory and skills --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("scope", "place"), [("user", ".config/agent-memory/scout"), ("project", ".claude/agent-memory/scout"),
                                              ("local", ".claude/agent-memory-local/scout")])
async def test_an_agent_reads_and_writes_its_memory(scope: str, place: str, world: World) -> None:
    world.agent("scout", memory=scope, tools="Grep")
    folder = world.root / place
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("\n".join(f"line {n}" for n in range(300)))
    await world.run([agent("Look."), text("done")], {"Look.": [
        call("Read", file_path=str(folder / "MEMORY.md")),
        call("Write", "w", file_path=str(folder / "new.md"), content="learned"), text("x")]})
    system = json.dumps(world.model.by_route["Look."][0]["system"])
    assert "line 199" in system and "line 200" not in system and str(folder) in system
    assert {"Read", "Write", "Edit"} <= set(world.tools("Look."))
    assert (folder / "new.md").exists(), world.told("Look.")


async def test_no_memory_where_it_is_switched_off(world: World) -> None:
    world.agent("scout", memory="user")
    await world.run([agent("Look."), text("done")], {"Look.": [text("x")]}, settings={"autoMemoryEnabled": False})
    assert "Your memory" not in world.told("Look.") and not (world.home / "agent-memory").exists()


async def test_skills_are_loaded_in_full_and_missing_ones_are_skipped(world: World) -> None:
    world.write(".claude/skills/birds/SKILL.md", "---\nname: birds\ndescription: About birds.\n---\nA robin has a red breast.\n")
    world.write(".claude/skills/secret/SKILL.md",
                "---\nname: secret\ndescription: d\ndisable-model-invocation: true\n---\nHidden text.\n")
    world.agent("scout", skills="birds, secret, missing")
    await world.run([agent("Look."), text("done")], {"Look.": [text("x")]}, more=("skills",))
    first = json.dumps(world.model.by_route["Look."][0]["messages"])
    assert "A robin has a red breast." in first and "Hidden text." not in first
    assert "A robin" not in world.told()


async def test_skills_without_their_plugin_are_named(world: World) -> None:
    world.agent("scout", skills="birds")
    await world.run([agent("Look."), text("done")], {"Look.": [text("x")]})
    assert any("no plugin brings skills" in n["content"] for n in world.said("informational"))


async def test_a_skill_with_a_context_of_its_own_runs_as_an_agent(world: World) -> None:
    world.write(".claude/skills/birds/SKILL.md", "---\nname: birds\ndescription: About birds.\ncontext: fork\nagent: scout\n"
                                                 "allowed-tools: Bash(touch *)\n---\nCount the birds.\n")
    world.write(".claude/agents/scout.md", SCOUT)
    await world.run([call("Skill", "s", skill="birds"), text("done")], {
        "Skill: birds": [call("Bash", command="touch counted"), text("Seven birds.")]}, more=("skills",),
        settings={"permissions": {"allow": ["Skill"]}})
    assert "Seven birds." in world.result("s") and (world.root / "counted").exists() and "Count the birds." not in world.told()


# -- the program -------------------------------------------------------------------------------------------------------------
async def test_start_up_with_sixty_agents_reads_each_file_once(world: World) -> None:
    for n in range(60):
        world.agent(f"a{n}")
    world.open([text("a"), text("b")])
    await world.go("Start.")
    catalogue = world.session.agents.catalogue  # type: ignore[union-attr]
    before = dict(catalogue._read)
    await world.go("More.")
    assert len(before) == 60 and all(catalogue._read[k] is v for k, v in before.items())


def test_the_plugin_is_found_as_installed() -> None:
    harness = Harness(Options(persist=False))
    assert harness.plugins.provider("tools", "Agent") is not None and SystemMessage is not None
