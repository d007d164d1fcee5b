"""Skills over a session's life: agents, changes on disk, files that were met, compaction, resumption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernel import Session, ToolResult
from kernel.clear import clear
from kernel.testing import Kit, Run, call, plugin_folder

from .skills_place import END, WITH, init, kit, seen, skill, write


# -- a context of its own ------------------------------------------------------------------------------------------------------
class Agents:
    """Keeps what it is asked to run."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def types(self, session: Session) -> list[str]:
        return ["general-purpose", "scout"]

    async def run(self, session: Session, **asked: Any) -> ToolResult:
        self.asked.append({**asked, "open": session.state.grants})
        return ToolResult(content="The depth is nine.")


def with_agents(root: Path, *turns: Any, prompts: tuple[str, ...]) -> tuple[Run, Agents]:
    import anyio

    made, agents = kit(root, *turns), Agents()

    async def go() -> Run:
        session = made.open()
        session.agents = agents
        try:
            for prompt in prompts[:-1]:
                await session.submit(prompt)
            return await made.run(prompts[-1], session)
        finally:
            await session.close()

    return anyio.run(go), agents


def test_a_forked_skill_is_an_agents_task_and_the_report_comes_back(tmp_path: Path) -> None:
    skill(tmp_path, "probe", "Probe $ARGUMENTS.\n", context="fork", agent="scout", model="haiku", allowed_tools="Bash(ls *)")
    run, agents = with_agents(tmp_path, END, prompts=("/probe deep", "What was it?"))
    [asked] = agents.asked
    assert asked["prompt"].endswith("Probe deep.") and asked["agent_type"] == "scout" and asked["model"] == "haiku"
    assert asked["background"] is False and asked["grants"] == ("Bash(ls *)",) and asked["open"] == ()
    assert "The depth is nine." in seen(run) and "The user ran /probe deep" in seen(run)
    skill(tmp_path, "look", context="fork")
    run, agents = with_agents(tmp_path, call("Skill", "c1", skill="look"), END, prompts=("Go.",))
    assert run.result_of("c1")["content"] == "The depth is nine." and agents.asked[0]["tool_use_id"] == "c1"
    assert agents.asked[0]["agent_type"] == "general-purpose"


def test_without_agents_or_with_an_unknown_one_a_forked_skill_says_so(tmp_path: Path) -> None:
    skill(tmp_path, "probe", context="fork", agent="nobody")
    assert "context: fork needs the plugin 'subagents'" in kit(tmp_path).play("/probe").text
    run, _ = with_agents(tmp_path, call("Skill", "c1", skill="probe"), END, prompts=("Go.",))
    assert "there is no agent 'nobody'; there are general-purpose, scout" in str(run.result_of("c1")["content"])


# -- changes, files, compaction -------------------------------------------------------------------------------------------------
def live(made: Kit, *steps: Any) -> Run:
    """Prompts, with functions called between them."""
    import anyio

    async def go() -> Run:
        session = made.open()
        try:
            for step in steps[:-1]:
                await session.submit(step) if isinstance(step, str) else step()
            return await made.run(steps[-1], session)
        finally:
            await session.close()

    return anyio.run(go)


def test_what_came_changed_or_went_is_told_at_the_next_prompt(tmp_path: Path) -> None:
    one = skill(tmp_path, "one")
    two = skill(tmp_path, "two")

    def change() -> None:
        skill(tmp_path, "three")
        one.write_text("---\ndescription: Other words.\n---\nStep two.\n")
        two.unlink()

    run = live(kit(tmp_path), "Hi.", change, "Go.", "/three")
    told = seen(run).split("have changed.")[1]
    assert "- one: Other words." in told and "- three: Does three." in told and "No longer there: two" in told
    assert seen(run).count("have changed.") == 1 and init(run)["skills"] == ["one", "three"]


def test_a_hook_may_refuse_a_change(tmp_path: Path) -> None:
    skill(tmp_path, "one")
    hooks = {"ConfigChange": [{"matcher": "skills", "hooks": [{"type": "command", "command": "exit 2"}]}]}
    run = live(kit(tmp_path, settings={"hooks": hooks}), "Hi.", lambda: skill(tmp_path, "two"), "/two now")
    assert "/two now" in seen(run) and "Step one." not in seen(run)


def test_a_session_start_hook_may_bring_skills(tmp_path: Path) -> None:
    command = "mkdir -p .claude/skills/new && echo 'Made at the start.' > .claude/skills/new/SKILL.md"
    answer = command + " && echo '{\"hookSpecificOutput\": {\"hookEventName\": \"SessionStart\", \"reloadSkills\": true}}'"
    hooks = {"SessionStart": [{"hooks": [{"type": "command", "command": answer}]}]}
    run = kit(tmp_path, settings={"hooks": hooks}).play("Hi.")
    assert init(run)["skills"] == ["new"] and "- new: Made at the start." in seen(run)


def test_nested_skills_come_with_the_first_file_of_theirs_and_clash_under_their_directory(tmp_path: Path) -> None:
    skill(tmp_path, "build", "Root build.\n")
    skill(tmp_path / "web", "build", "Web build.\n")
    skill(tmp_path / "web", "lint", "Lint it.\n")
    skill(tmp_path / "node_modules/x", "evil", "Evil.\n")
    for place in ("web/src", "node_modules/x"):
        write(tmp_path, f"{place}/a.txt", "x")
    reads = [call("Read", file_path=str(tmp_path / p)) for p in ("web/src/a.txt", "node_modules/x/a.txt")]
    run = kit(tmp_path, *reads, call("Skill", "c1", skill="build"), call("Skill", "c2", skill="web:build"), END).play("Go.")
    assert "- lint" not in seen(run, 0) and "- lint: Does lint." in seen(run, 1) and "- web:build: Does build." in seen(run, 1)
    assert "Root build." in seen(run) and "- web:build, for files in web/" in seen(run) and "Web build." in seen(run)
    assert "evil" not in seen(run)


def test_a_skill_for_certain_files_comes_up_with_them(tmp_path: Path) -> None:
    skill(tmp_path, "tables", paths="data/**/*.csv")
    write(tmp_path, "data/a.txt", "x")
    write(tmp_path, "data/b.csv", "x")
    reads = [call("Read", file_path=str(tmp_path / p)) for p in ("data/a.txt", "data/b.csv")]
    run = kit(tmp_path, *reads, END).play("Go.")
    assert ["- tables" in seen(run, n) for n in range(3)] == [False, False, True]


def test_after_a_compaction_the_latest_skills_are_told_again_within_their_budgets(tmp_path: Path) -> None:
    import anyio

    for n in range(7):
        skill(tmp_path, f"s{n}", f"Begin {n}. " + "x" * (30_000 if n else 100) + f" End {n}.\n")
    made = kit(tmp_path)

    async def go() -> list[str]:
        session = made.open()
        for n in (0, 1, 2, 3, 4, 5, 6, 1):
            await session.submit(f"/s{n}")
        [extension] = [x for x in session.harness.extensions if x.name == "skills"]
        blocks = await extension.after_compaction(session)
        await session.submit("/s0")
        await session.close()
        return [block["text"] for block in blocks]

    reminder, *told = anyio.run(go)
    assert "no new request" in reminder and [t.split("\n")[0] for t in told] == [f"Skill: s{n}" for n in (1, 6, 5, 4, 3)]
    assert all(len(t) <= 20_000 for t in told) and sum(map(len, told)) <= 100_000
    assert "Begin 1." in told[0] and "End 1." not in told[0]
    last = made.model.requests[-1]["messages"][-1]["content"][-1]["text"]
    assert "Begin 0." in last, "what was dropped is told in full when it is invoked again"


def test_an_agent_gets_whole_texts_at_its_start_and_no_rights_by_them(tmp_path: Path) -> None:
    import anyio

    plugin = plugin_folder(tmp_path / "p", "plug", {"skills/s/SKILL.md": "Theirs.\n"})
    skill(tmp_path, "s", "Mine.\n", allowed_tools="Bash(touch *)")
    skill(tmp_path, "manual", disable_model_invocation="true")
    made = kit(tmp_path, plugin_dirs=[plugin])

    async def go() -> list[str | None]:
        session = made.open()
        await session.submit("Hi.")
        skills = session.plugin_state["skills"]
        found = [await skills.preload("s", session), await skills.preload("s", session, plugin="plug"),
                 await skills.preload("manual", session), await skills.preload("gone", session)]
        assert session.state.grants == ()
        await session.close()
        return found

    mine, theirs, *none = anyio.run(go)
    assert mine and mine.endswith("Mine.") and theirs and theirs.endswith("Theirs.") and none == [None, None]


def test_a_resumed_session_knows_what_ran_and_is_not_told_the_list_twice(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    skill(tmp_path, "s", "Do $ARGUMENTS.\n")
    sessions = (*WITH, "sessions")
    first = kit(tmp_path, installed=sessions, persist=True).play("/s this")
    run = kit(tmp_path, installed=sessions, persist=True, resume=first.session.id).play("/s this")
    assert seen(run).count("Does s.") == 1 and seen(run).count("Do this.") == 1 and "was invoked again" in seen(run)


def test_a_skill_does_not_fork_itself_inside_its_own_task(tmp_path: Path) -> None:
    skill(tmp_path, "probe", context="fork")

    class Nested(Agents):
        async def run(self, session: Session, **asked: Any) -> ToolResult:
            from kernel_skills import invoke, state
            from kernel_skills.render import SkillError

            skills = state.of(session)
            with pytest.raises(SkillError, match="runs already"):
                await invoke.fork(skills.catalogue.by_name["probe"], "", session, skills)
            return ToolResult(content="One level.")

    import anyio

    made = kit(tmp_path)

    async def go() -> str:
        session = made.open()
        session.agents = Nested()
        try:
            return [(await session.submit("/probe")).result, (await session.submit("/probe")).result][1]
        finally:
            await session.close()

    assert anyio.run(go) == "One level."


def test_a_cleared_conversation_is_told_of_skills_anew_and_has_none_of_their_texts(tmp_path: Path) -> None:
    skill(tmp_path, "plain", "The whole text.\n")
    skill(tmp_path, "for-oaks", paths="'*.oak'")
    (tmp_path / "a.oak").write_text("bark")
    import anyio

    made = kit(tmp_path, call("Read", "r1", file_path=str(tmp_path / "a.oak")), END, END, END, allowed_tools=["Read"])

    async def go() -> Run:
        session = made.open()
        try:
            await session.submit("Read it.")
            await session.submit("/plain")
            await clear(session)
            return await made.run("/plain", session)
        finally:
            await session.close()

    run = anyio.run(go)
    assert "for-oaks" in seen(run, 1) and "The whole text." in seen(run, 2)
    assert "- plain: Does plain." in seen(run) and "The whole text." in seen(run), "nothing stands above"
    assert "for-oaks" not in seen(run), "no such file was met in this conversation"
