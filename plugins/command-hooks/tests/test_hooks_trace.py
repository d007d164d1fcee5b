"""The trace of what hooks did, and ``kernel hooks trace``."""

from __future__ import annotations

import io
import json
import os
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from kernel_command_hooks.command import HooksCommand
from kernel_command_hooks.trace import TEXT_CHARS, shortened
from kernel_command_hooks.trace_show import find, read

from kernel import Notification, PreToolUseResult, UsageError
from kernel.testing import call, module, text

from .conftest import World

pytestmark = pytest.mark.anyio
TRACE = {"hooks": {"trace": True}}


async def traced(world: World, make_bash: Any, *, settings: dict[str, Any], debug: bool = False, **options: Any) -> str:
    """A kept session with one call; its id."""
    world.settings(**settings)
    session = world.start([call("Bash", "c1", command="ls"), text("done")], tools=[make_bash()], installed=["sessions"],
                          **{"persist": True, **options})
    if not debug:
        world.kit.harness.debug_sink = None
    await world.prompt("go", session)
    await session.close()
    return session.id


def lines(world: World) -> list[dict[str, Any]]:
    (path,) = world.config.glob("projects/*/*/hook-trace.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_a_trace_says_who_changed_what_and_how_long_it_took(world: World, make_bash: Any) -> None:
    say = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
                                  "updatedInput": {"command": "pwd"}}}
    hooks = {**world.hooks("PreToolUse", world.handler("rewrite", json_out=say), "exit 1"),
             **world.hooks("PostToolUse", {"type": "command", "command": world.handler("late"), "async": True})}

    def agree(event: Any) -> PreToolUseResult:
        return PreToolUseResult(additional_context="in process")

    await traced(world, make_bash, settings={"kernel": TRACE, "hooks": hooks}, hooks={"mine": module(pre_tool_use=agree)})
    (pre,) = [line for line in lines(world) if line["event"] == "PreToolUse"]
    assert pre["name"] == "PreToolUse:Bash" and pre["tool_use_id"] == "c1" and pre["prompt_id"]
    assert pre["plugins"]["command-hooks"] > 0 and "mine" in pre["plugins"]
    assert sorted((row["type"], row["exit_code"]) for row in pre["handlers"]) == [("command", 0), ("command", 1)]
    assert any("Failed with non-blocking status code" in row.get("failed", "") for row in pre["handlers"])
    answers = {(a["plugin"], a["source"].partition("handler-")[2]) for a in pre["answers"]}
    assert answers == {("command-hooks", "rewrite"), ("mine", "")}
    assert pre["merged"]["decision"] == "allow" and pre["merged"]["updated_input"]["value"] == {"command": "pwd"}
    assert {line["event"] for line in lines(world)} >= {"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"}


async def test_what_nobody_waited_for_has_its_own_line(world: World, make_bash: Any) -> None:
    hooks = world.hooks("Notification", world.handler("n"))
    world.settings(hooks=hooks, kernel=TRACE)
    session = world.start([text("done")], installed=["sessions"], persist=True)
    await world.prompt("go", session)
    await session.fire(session.make(Notification, message="m", notification_type="idle_prompt"))
    await session.plugin_state["command-hooks"].running.background.settle()
    await session.close()
    (late,) = [line for line in lines(world) if "background" in line]
    assert late["name"] == "Notification:idle_prompt" and late["background"]["exit_code"] == 0


@pytest.mark.parametrize(("settings", "debug", "options", "there"), [
    ({}, False, {}, False), ({"kernel": TRACE}, False, {}, True), ({}, True, {}, True),
    ({"kernel": {"hooks": {"trace": "yes"}}}, False, {}, False), ({"kernel": TRACE}, False, {"persist": False}, False)])
async def test_when_a_session_is_traced(world: World, make_bash: Any, settings: dict[str, Any], debug: bool,
                                        options: dict[str, Any], there: bool) -> None:
    await traced(world, make_bash, settings=settings, debug=debug, **options)
    assert bool(list(world.config.rglob("hook-trace.jsonl"))) is there
    if "persist" in options:
        assert any("not traced" in n for n in world.notices())


async def test_only_the_owner_can_read_it_and_a_link_is_not_followed(world: World, make_bash: Any) -> None:
    first = await traced(world, make_bash, settings={"kernel": TRACE})
    path = find(first)
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o077 == 0
    target = world.root / "elsewhere"
    path.unlink()
    path.symlink_to(target)
    await traced(world, make_bash, settings={"kernel": TRACE}, resume=first)
    assert not target.exists() and any("not traced any more" in n for n in world.notices())


async def test_long_texts_are_cut_and_nothing_is_too_strange_to_write(world: World, make_bash: Any) -> None:
    hooks = world.hooks("PreToolUse", world.handler("h", json_out={"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "additionalContext": "x" * 9000, "updatedInput": {"command": "\ud800"}}}))
    await traced(world, make_bash, settings={"kernel": TRACE, "hooks": hooks})
    (pre,) = [line for line in lines(world) if line["event"] == "PreToolUse"]
    assert len(json.dumps(pre)) < 4 * TEXT_CHARS + 2000
    assert shortened({"a": ["\ud800", ("b" * 900,)]})["a"][0] == "\ufffd"


async def test_a_session_that_is_resumed_goes_on_in_its_trace(world: World, make_bash: Any) -> None:
    hooks = world.hooks("SessionStart", world.handler("s"))
    first = await traced(world, make_bash, settings={"kernel": TRACE, "hooks": hooks})
    await traced(world, make_bash, settings={"kernel": TRACE, "hooks": hooks}, resume=first)
    starts = [line["name"] for line in lines(world) if line["event"] == "SessionStart"]
    assert starts == ["SessionStart:startup", "SessionStart:resume"]


async def test_who_listened_before_still_hears_everything(world: World, make_bash: Any) -> None:
    world.settings(kernel=TRACE)
    session = world.start([text("done")], installed=["sessions"], persist=True)
    heard: list[str] = []
    session.harness.trace_sink = lambda session, event, outcomes, merged: heard.append(event.event_name)
    await world.prompt("go", session)
    await session.close()
    assert heard == [line["event"] for line in lines(world)] and "SessionEnd" in heard


# -- the command -----------------------------------------------------------------------------------------------------------
def show(*args: str) -> str:
    with redirect_stdout(io.StringIO()) as out:
        assert HooksCommand().run(["trace", *args]) == 0
    return out.getvalue()


async def test_the_command_shows_changes_and_a_figure_per_plugin(world: World, make_bash: Any) -> None:
    hooks = world.hooks("PreToolUse", world.handler("no", exit=2, stderr="not here"))
    id = await traced(world, make_bash, settings={"kernel": TRACE, "hooks": hooks})
    shown = show(id)
    assert "PreToolUse:Bash c1" in shown and '"permissionDecisionReason":"not here"' in shown and "exit code 2" in shown
    assert "command-hooks" in shown and "median ms" in shown and "p95 ms" in shown
    report = json.loads(show(id[:8], "--json"))
    assert report["plugins"]["command-hooks"]["runs"] == len(report["firings"]) >= 5
    figures = report["handlers"]
    assert len(figures) == 1 and all(f["max"] >= f["p95"] >= f["median"] > 0 for f in figures.values())
    transcript = next(world.config.glob(f"projects/*/{id}.jsonl"))
    assert find(str(transcript)) == find(id) == find(str(find(id)))


@pytest.mark.parametrize("session", ["no-such", "../..", "", "*", "/no/such"])
async def test_a_session_without_a_trace_says_how_to_get_one(world: World, session: str) -> None:
    with pytest.raises(UsageError, match=r"kernel\.hooks\.trace"):
        find(session)


async def test_a_damaged_trace_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "hook-trace.jsonl"
    path.write_bytes(b'{"event":"Stop","name":"Stop","at":"t","plugins":{"p":1.0}}\n\xff\xfe\n{"half\n[]\n')
    report = read(path)
    assert len(report["firings"]) == 1 and report["damaged_lines"] == 3
    assert os.fspath(path) == report["path"]
