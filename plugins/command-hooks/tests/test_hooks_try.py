"""``kernel hooks test``: one event, for real, without a conversation."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from kernel_command_hooks.command import HooksCommand
from kernel_command_hooks.dry_run import DryHarness
from kernel_command_hooks.payloads import SAMPLES, TOOL_INPUTS, build

from kernel import EVENTS, Options, UsageError

from .conftest import World

SHARED = Path(os.environ.get("KERNEL_SHARED", Path(__file__).parents[4] / "shared"))
DATA = SHARED / "contract" / "hook-events.json"


def run(world: World, *args: str, code: int = 0) -> str:
    with chdir(world.cwd), redirect_stdout(io.StringIO()) as out:
        assert HooksCommand().run(["test", *args]) == code
    return out.getvalue()


def report(world: World, *args: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(world, *args, "--json", code=code))
    return found


def test_it_shows_each_answer_and_what_they_come_to(world: World) -> None:
    allow = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}
    world.settings("user", hooks=world.hooks("PreToolUse", world.handler("yes", json_out=allow)))
    world.settings(hooks={"PreToolUse": [
        {"matcher": "Bash", "hooks": [{"type": "command", "command": world.handler("no", exit=2, stderr="not here")}]},
        {"matcher": "Edit", "hooks": [{"type": "command", "command": world.handler("edit")}]},
        {"hooks": [{"type": "command", "command": world.handler("git"), "if": "Bash(git *)"},
                   {"type": "prompt", "prompt": "fine?"}]}]})
    found = report(world, "PreToolUse", "--tool", "Bash", "--input", '{"command": "rm -r x"}')
    assert found["event"] == "PreToolUse:Bash" and found["input"]["tool_input"] == {"command": "rm -r x"}
    rows = {row["label"].partition("handler-")[2] or row["type"]: row for row in found["handlers"]}
    assert rows["no"]["exit_code"] == 2 and rows["no"]["stderr"] == "not here" and rows["no"]["ms"] > 0
    assert json.loads(rows["yes"]["stdout"]) == allow
    assert "'Edit'" in rows["edit"]["not_run"] and "'Bash(git *)'" in rows["git"]["not_run"]
    assert rows["prompt"]["not_run"] == "no model is asked here"
    assert sorted(world.ran()) == ["no", "yes"]
    assert {a["answer"]["hookSpecificOutput"]["permissionDecision"] for a in found["answers"]} == {"allow", "deny"}
    assert found["merged"]["decision"] == "deny" and found["merged"]["reasons"][0]["text"] == "not here"
    text = run(world, "PreToolUse", "--tool", "Bash", "--input", '{"command": "rm -r x"}')
    assert "exit code 2" in text and "decision: " in text and '"deny"' in text and "stderr: not here" in text


def test_a_handler_that_fails_makes_the_command_fail(world: World) -> None:
    world.settings(hooks=world.hooks("Stop", "no-such-program-xyz"))
    found = report(world, "Stop", code=1)
    assert "no-such-program-xyz" in found["handlers"][0]["failed"] and found["merged"] == {}
    assert "decision: none" in run(world, "Stop", code=1)


def test_what_runs_in_the_background_is_waited_for(world: World) -> None:
    late = {"type": "command", "command": world.handler("a", sleep_s=0.3), "async": True}
    world.settings(hooks={**world.hooks("PostToolUse", late),
                          **world.hooks("Notification", world.handler("n", sleep_s=0.3))})
    assert report(world, "PostToolUse", "--tool", "Write")["handlers"][0]["background"] is True
    assert report(world, "Notification")["handlers"][0]["background"] is True
    assert world.ended() == ["a", "n"]


def test_nothing_is_left_behind(world: World) -> None:
    """No transcript, no variable file, no session."""
    world.settings(hooks=world.hooks("SessionStart", "echo export A=1 >> $CLAUDE_ENV_FILE"))
    report(world, "SessionStart")
    assert not list(world.config.rglob("*.jsonl"))


def test_plugins_and_settings_can_be_named(world: World) -> None:
    hooks = world.hooks("Stop", world.handler("p", exit=2, stderr="p says no"))
    root = world.plugin("guard", {"hooks/hooks.json": {"hooks": hooks}})
    settings = json.dumps({"hooks": world.hooks("Stop", world.handler("flag"))})
    found = report(world, "Stop", "--plugin-dir", str(root), "--settings", settings)
    assert found["merged"]["block_reasons"] == [{"source": found["answers"][0]["source"], "text": "p says no"}]
    assert sorted(world.ran()) == ["flag", "p"]


@pytest.mark.parametrize(("args", "says"), [
    (["PreToolUs"], "did you mean PreToolUse"), (["Stop", "--tool", "Bash"], "no tool event"),
    (["Stop", "--input", "{"], "no JSON"), (["Stop", "--input", "[]"], "must be a JSON object"),
    (["Stop", "--input", '{"nonsense": 1}'], "no field nonsense"),
    (["SessionStart", "--input", '{"source": "x"}'], "SessionStart: Invalid enum value"),
    ([], "cannot be used"), (["Stop", "Stop"], "cannot be used")])
def test_wrong_use_says_what_is_right(world: World, args: list[str], says: str) -> None:
    with chdir(world.cwd), pytest.raises(UsageError) as error:
        HooksCommand().run(["test", *args])
    assert says in str(error.value)


def test_fields_of_an_event_can_be_given(world: World) -> None:
    world.settings(hooks=world.hooks("SessionStart", world.handler("r"), matcher="resume"))
    report(world, "SessionStart")
    report(world, "SessionStart", "--input", '{"source": "resume"}')
    assert [i["source"] for i in world.inputs("r")] == ["resume"]


def test_the_command_line_has_it(world: World) -> None:
    """The whole way: a process of its own, in the folder, with the person's own settings."""
    world.settings(hooks=world.hooks("Stop", world.handler("s", exit=2, stderr="go on")))
    command = [sys.executable, "-m", "kernel", "hooks", "test", "Stop"]
    done = subprocess.run(command, cwd=world.cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and '"blocked":true' in done.stdout, done.stderr
    assert not done.stderr


# -- payloads ------------------------------------------------------------------------------------------------------------
def test_every_event_has_a_payload() -> None:
    assert SAMPLES.keys() == {name for name, event in EVENTS.items() if not event.ours}


@pytest.mark.skipif(not DATA.exists(), reason=f"the contract's data is not at {DATA}")
@pytest.mark.parametrize("name", [name for name, event in EVENTS.items() if not event.ours])
def test_every_payload_fits_the_contracts_schema(world: World, name: str) -> None:
    import jsonschema
    import msgspec

    schema = json.loads(DATA.read_text())[name]["input"]
    session = DryHarness(Options(cwd=world.cwd, persist=False)).open()
    tools = TOOL_INPUTS if "tool_name" in schema["properties"] else [None]
    for tool in tools:
        value = msgspec.json.decode(msgspec.json.encode(build(session, name, tool)))
        jsonschema.validate(value, schema)
        assert "CWD" not in json.dumps(value)
