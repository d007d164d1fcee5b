"""Cases of the contract whose host is another plugin, which plays its part for real: agents, skills, memory, compaction."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import anyio.lowlevel

from kernel import Clock, Dialogue
from kernel.testing import Turn, call, installed, text

from .case_driver import MissingPlugin, Play
from .case_words import prompt


def take_part(play: Play, *plugins: str) -> None:
    """These plugins take part; every tool may run unasked."""
    missing = [name for name in plugins if not installed(name)]
    if missing:
        raise MissingPlugin(f"the plugin {missing[0]} is not installed")
    play.real = list(plugins)
    play.options["allowed_tools"] = ["Agent", "Bash", "Read", "Skill"]


def request_of(play: Play, number: int) -> str:
    """All messages of one request to the model."""
    return json.dumps(play.world.kit.model.requests[number]["messages"], ensure_ascii=False)


def _only_first(play: Play, id: str) -> None:
    """The handler does what the case says when it is asked first, and has nothing to say afterwards."""
    path = play.world.bin / f"handler-{id}"
    first = shlex.quote(str(play.world.log / f"{id}.first"))
    head, *rest = path.read_text().splitlines(keepends=True)
    keep = shlex.quote(str(play.world.log / id))
    later = f"if [ -e {first} ]; then {play.world.recording(id)}; cat > {keep}.in.$$; exit 0; fi; : > {first}\n"
    path.write_text("".join([head, later, *rest]))


# -- agents ------------------------------------------------------------------------------------------------------------
TASK = "THE-TASK"


def agent_call(type: str) -> dict[str, Any]:
    return call("Agent", "toolu_agent", description="look", prompt=TASK, subagent_type=type, run_in_background=False)


async def _agent_starts(play: Play) -> None:
    take_part(play, "subagents")
    play.open([agent_call("Explore"), text("found"), text("done")])
    await prompt(play)
    before, main, inside, after = "only read docs", *(request_of(play, n) for n in range(3))
    assert before not in main and before not in after
    assert 0 <= inside.find(before) < inside.find(TASK)


async def _agent_goes_on(play: Play) -> None:
    take_part(play, "subagents")
    _only_first(play, "a")
    play.open([agent_call("Explore"), text("two files"), text("a.py and b.py"), text("done")])
    await prompt(play)
    assert "list the files too" not in request_of(play, 1) and "list the files too" in request_of(play, 2)
    assert "a.py and b.py" in request_of(play, 3) and "list the files too" not in request_of(play, 3)
    assert [i["stop_hook_active"] for i in play.world.inputs("a")] == [False, True]


async def _agent_feedback(play: Play) -> None:
    take_part(play, "subagents", "tools-shell", "sessions")
    play.options["persist"] = True
    _only_first(play, "a")
    shell = call("Bash", "toolu_shell", command="sleep 30 # deploy", description="deploy", run_in_background=True)
    play.open([shell, agent_call("Plan"), text("a plan"), text("a plan with numbers"), text("done")])
    await prompt(play)
    assert "add line numbers" not in request_of(play, 2) and "add line numbers" in request_of(play, 3)
    first, second = play.world.inputs("a")
    (task,) = first["background_tasks"]
    assert (task["type"], task["command"]) == ("shell", "sleep 30 # deploy")
    assert first["transcript_path"] == play.session.transcript.path != first["agent_transcript_path"]
    assert second["stop_hook_active"] is True and second["last_assistant_message"] == "a plan with numbers"


async def _call_in_agent(play: Play) -> None:
    """The case's call is made by a subagent of the type it names."""
    take_part(play, "subagents")
    if "permissions" in play.given:
        play.options["allowed_tools"] = ["Agent"]
    one = play.when["tool_call"]
    (play.world.cwd / ".claude/agents").mkdir(parents=True)
    (play.world.cwd / ".claude/agents/worker.md").write_text("---\nname: worker\ndescription: Works.\n---\nYou work.\n")
    start = agent_call(one["in_subagent"])
    start["input"]["run_in_background"] = one.get("background", False)
    if one.get("background"):  # its requests and the main conversation's come in any order: told apart by the task
        turns = {True: [play.calls(one), text("found")], False: [start, text("done")]}

        def turn(body: dict[str, Any]) -> Any:
            return turns[TASK in json.dumps(body["messages"][0])].pop(0)
        play.open([turn] * 4)
    else:
        play.open([start, play.calls(one), text("found"), text("done")])
    await prompt(play)
    while play.session.inbox.awaited and not len(play.session.inbox):
        await play.session.inbox.wait(20)
    assert len(play.world.kit.model.requests) == 4


# -- conversations -----------------------------------------------------------------------------------------------------
async def _every_start(play: Play) -> None:
    take_part(play, "sessions", "compactor")
    play.options["persist"] = True
    for fork in (None, False, True):
        if fork is not None:
            play.options |= {"resume": play.session.id, "fork_session": fork}
            await play.session.close()
        play.open([text("one"), text("two"), text("<summary>SUMMARY</summary>")])
        await prompt(play)
    await prompt(play, "/clear")
    await prompt(play)
    await prompt(play, "/compact")
    assert [i["source"] for id in "srfc" for i in play.world.inputs(id)] == ["startup", "resume", "fork", "clear", "compact"]


async def _every_end(play: Play) -> None:
    take_part(play, "sessions")
    play.options["persist"] = True
    play.open([text("one"), text("two")])
    await prompt(play)
    await prompt(play, "/clear")
    await prompt(play)
    await play.session.close("prompt_input_exit")
    assert [i["reason"] for i in play.world.inputs("b")] == ["clear", "prompt_input_exit"]


# -- skills ------------------------------------------------------------------------------------------------------------
def _skill(name: str) -> str:
    return f"---\nname: {name}\ndescription: Does {name}.\n---\nSTEPS-OF-{name} $ARGUMENTS\n"


def _deploy(play: Play) -> None:
    take_part(play, "skills")
    path = play.world.cwd / ".claude/skills/deploy/SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(_skill("deploy"))


async def _typed_and_called(play: Play) -> None:
    _deploy(play)
    play.open([text("deployed"), call("Skill", "toolu_skill", skill="deploy", args="prod"), text("done")])
    await prompt(play, "/deploy staging")
    assert play.world.ran() == ["x"] and "STEPS-OF-deploy staging" in request_of(play, 0)
    await prompt(play, "deploy it to production too")
    assert play.world.ran() == ["x", "s"] and "STEPS-OF-deploy prod" in request_of(play, 2)


async def _typed_and_blocked(play: Play) -> None:
    _deploy(play)
    play.open([text("done")])
    await prompt(play, "/deploy prod")
    assert play.world.kit.model.requests == [] and not len(play.session.history)


async def _installed_at_start(play: Play) -> None:
    """The case's command starts with ``install``: a program of that name does what the rest of the line says."""
    take_part(play, "skills")
    answer = {"hookSpecificOutput": {"hookEventName": "SessionStart", "reloadSkills": True}}
    source, target = play.world.root / "new-skill.md", play.world.cwd / ".claude/skills/new-skill/SKILL.md"
    source.write_text(_skill("new-skill"))
    play.world.program("install", f"#!/bin/sh\nmkdir -p {shlex.quote(str(target.parent))}\n"
                       f"cp {shlex.quote(str(source))} {shlex.quote(str(target))}\necho {shlex.quote(json.dumps(answer))}\n")
    play.open([text("done")])
    assert not target.exists()
    await prompt(play, play.when["prompt"])
    assert "STEPS-OF-new-skill" in request_of(play, 0)


async def _edited_skill(play: Play) -> None:
    """Whoever edits it, the change is seen with the next prompt."""
    _deploy(play)
    play.open([text("one"), text("two")])
    await prompt(play)
    path = play.world.cwd / ".claude/skills/deploy/SKILL.md"
    path.write_text(_skill("deploy") + "One step more.\n")
    await prompt(play)
    await play.settle()
    assert [i["file_path"] for i in play.world.inputs("a")] == [str(path)]


# -- instruction files, files that are mentioned -----------------------------------------------------------------------
async def _instructions(play: Play) -> None:
    take_part(play, "memory", "tools-files")
    file = play.world.cwd / "sub" / "file"
    file.write_text("text")
    play.open([call("Read", "toolu_read", file_path=str(file)), text("done")])
    await play.session.start()
    await prompt(play)
    await play.settle()
    (nested,), (included,), start = (play.world.inputs(id) for id in "nia")
    assert (nested["file_path"], nested["trigger_file_path"]) == (str(file.parent / "CLAUDE.md"), str(file))
    assert included["file_path"] == str(play.world.cwd / "extra.md")
    assert included["parent_file_path"] == str(play.world.cwd / "CLAUDE.md")
    assert [i["file_path"] for i in start] == [str(play.world.cwd / "CLAUDE.md")]


async def _instructions_stay(play: Play) -> None:
    take_part(play, "memory")
    play.open([text("hello to you")])
    await prompt(play, play.when["prompt"])
    await play.settle()
    assert play.world.ran() == ["a"] and play.run is not None and play.run.text == "hello to you"


async def _mentioned(play: Play) -> None:
    take_part(play, "tools-files")
    (play.world.cwd / "notes.md").write_text("THE-NOTES")
    play.open([text("done")])
    await prompt(play, play.when["prompt"])
    assert "THE-NOTES" in request_of(play, 0)


# -- compaction --------------------------------------------------------------------------------------------------------
async def _compact_refused(play: Play) -> None:
    take_part(play, "compactor")
    play.open([text("one"), text("a summary that nobody asks for")])
    await prompt(play)
    before = play.session.history.wire()
    await prompt(play, "/compact keep the plan")
    assert play.session.history.wire() == before and len(play.world.kit.model.requests) == 1


async def _compact_refused_at_threshold(play: Play) -> None:
    take_part(play, "compactor")
    full = Turn(blocks=[call("Read", "toolu_full", file_path="a")], usage={"input_tokens": 195_000, "output_tokens": 5})
    play.open([full, text("two")])
    await prompt(play, "THE-FIRST-PROMPT")
    assert play.world.ran() == ["a"] and play.world.inputs("a")[0]["trigger"] == "auto"
    assert play.run is not None and play.run.text == "two" and not play.run.result.is_error
    assert "THE-FIRST-PROMPT" in request_of(play, 1) and "toolu_full" in request_of(play, 1)
    assert len(play.world.kit.model.requests) == 2


async def _compacted(play: Play) -> None:
    take_part(play, "compactor")
    play.open([text("one"), text("<summary>THE-SUMMARY</summary>"), text("two")])
    await prompt(play, "THE-FIRST-PROMPT")
    await prompt(play, "/compact")
    assert len(play.world.kit.model.requests) == 2 and play.world.inputs("p")[0]["compact_summary"] == "THE-SUMMARY"
    await prompt(play, "go on")
    assert "use bun" in request_of(play, 2) and "THE-SUMMARY" in request_of(play, 2)
    assert "THE-FIRST-PROMPT" not in request_of(play, 2)


# -- a program that is asked -------------------------------------------------------------------------------------------
class Hasty(Clock):
    """Whoever sleeps has slept enough at once. ``sleeps``: how long, in seconds."""

    def __init__(self) -> None:
        self.sleeps: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        await anyio.lowlevel.checkpoint()


class Program:
    """Stands for the program and for the front end that reads its lines (``kernel.Wire``); allows when the hook has ended."""

    busy = True

    def __init__(self, play: Play, tasks: Any) -> None:
        self._play, self._tasks = play, tasks
        self.asked: list[dict[str, Any]] = []
        self.dialogue: Dialogue = play.session.harness.one("controls", "stdio").open(play.session, self)

    def write(self, line: bytes) -> None:
        frame = json.loads(line)
        if frame.get("request", {}).get("subtype") == "can_use_tool":
            self.asked.append(frame)
            self._tasks.start_soon(self._answer, frame["request_id"])

    def spawn(self, work: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
        self._tasks.start_soon(work, *args)

    async def _answer(self, id: str) -> None:
        with anyio.fail_after(10):
            while not self._play.world.ended():  # noqa: ASYNC110
                await anyio.sleep(0.02)
        answer = {"subtype": "success", "request_id": id, "response": {"behavior": "allow"}}
        self.dialogue.take({"type": "control_response", "response": answer})


async def _question_waits(play: Play) -> None:
    """Time is told by the session's clock: nothing but the question waits, also in the idle session."""
    take_part(play, "control")
    clock = Hasty()
    play.options |= {"clock": clock, "extra": {"permission_prompt_tool": "stdio"}, "allowed_tools": [],
                     "input_format": "stream-json", "output_format": "stream-json", "verbose": True}
    play.open([play.calls({"name": "Bash", "input": {"command": "touch a"}}), text("done")])
    async with anyio.create_task_group() as tasks:
        program = Program(play, tasks)
        await prompt(play)
        await play.settle()
    assert len(program.asked) == 1 and play.tools["Bash"].inputs == [{"command": "touch a"}]
    assert clock.sleeps == [6.0]


PEERS = {
    "subagent-start-context-goes-to-subagent": _agent_starts, "subagent-stop-block-feeds-subagent": _agent_goes_on,
    "subagent-stop-context-is-feedback": _agent_feedback,
    "source-settings-hook-runs-in-subagent": _call_in_agent,
    "permreq-background-subagent-denied-without-decision": _call_in_agent,
    "start-sources": _every_start, "end-reasons": _every_end,
    "expansion-direct-command-only": _typed_and_called, "expansion-block": _typed_and_blocked,
    "start-reload-skills": _installed_at_start, "config-change-skills-source": _edited_skill,
    "instructions-loaded-reasons": _instructions, "instructions-loaded-cannot-block": _instructions_stay,
    "perm-at-file-reference-raises-no-pretooluse": _mentioned,
    "precompact-manual-block": _compact_refused, "precompact-auto-block-proactive": _compact_refused_at_threshold,
    "postcompact-then-sessionstart": _compacted, "notification-types-in-sdk-sessions": _question_waits,
}
