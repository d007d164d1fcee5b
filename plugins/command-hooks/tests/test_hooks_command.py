"""The command handler: forms, placeholders, environment, directory (hooks contract, sections 6.2 and 9). Real processes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from kernel_command_hooks.process import GRACE_S
from kernel_command_hooks.running import PARALLEL

from kernel import EVENTS
from kernel.testing import call, text

pytestmark = pytest.mark.anyio

STOP = EVENTS["Stop"]
PRE = EVENTS["PreToolUse"]
DUMP = "#!/usr/bin/env python3\nimport json, sys\njson.dump(sys.argv[1:], open('argv.json', 'w'))\n"


async def stop(world: Any, *handlers: Any, plugin: bool = False, **manifest: Any) -> Any:
    """Run handlers of one Stop, from the project's settings or from a plugin."""
    hooks = world.hooks("Stop", *handlers)
    if plugin:
        world.plugin("p", {"hooks/hooks.json": {"hooks": hooks}}, **manifest)
    else:
        world.settings(hooks=hooks)
    session = world.start()
    return await world.fire(session, STOP, stop_hook_active=False)


def argv(world: Any) -> list[str]:
    return json.loads((world.cwd / "argv.json").read_text())


# -- the two forms -----------------------------------------------------------------------------------------------------
async def test_shell_form_has_a_shell(world: Any) -> None:
    await stop(world, "printf one | tr a-z A-Z > out.txt && true")
    assert (world.cwd / "out.txt").read_text() == "ONE"


async def test_exec_form_passes_arguments_as_written(world: Any) -> None:
    world.program("argv-dump", DUMP)
    arguments = ["a b", "$HOME", "`id`", "it's", "*"]
    await stop(world, {"type": "command", "command": "argv-dump", "args": arguments})
    assert argv(world) == arguments


async def test_empty_args_is_exec_form_and_needs_no_quoting(world: Any) -> None:
    script = world.cwd / "my dir" / "h.sh"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\ntouch ran\n")
    script.chmod(0o755)
    await stop(world, {"type": "command", "command": "${CLAUDE_PROJECT_DIR}/my dir/h.sh", "args": []})
    assert (world.cwd / "ran").exists()


async def test_shell_chooses_bash(world: Any) -> None:
    await stop(world, {"type": "command", "command": "echo ${BASH_VERSION:-none} > v", "shell": "bash"})
    assert (world.cwd / "v").read_text().strip() != "none"


async def test_a_prefix_wraps_shell_form_only(world: Any) -> None:
    world.program("argv-dump", DUMP)
    os.environ["CLAUDE_CODE_SHELL_PREFIX"] = "argv-dump"
    await stop(world, "echo 'a b'", {"type": "command", "command": "touch", "args": ["direct"]})
    assert argv(world) == ["echo 'a b'"] and (world.cwd / "direct").exists()


@pytest.mark.parametrize("handler", [
    {"command": "./nope.sh"}, {"command": "no-such-program-xyz", "args": ["a"]}, {"command": "/etc/passwd"},
    {"command": "/etc/passwd", "args": []}, {"command": "a\u0000b", "args": []}])
async def test_a_program_that_cannot_be_started_is_announced_and_does_not_block(world: Any, handler: dict[str, Any]) -> None:
    world.settings(hooks=world.hooks("PreToolUse", {"type": "command", **handler}))
    session = world.start()
    merged = await world.fire(session, PRE, tool_name="Bash", tool_input={}, tool_use_id="i")
    assert merged.decision is None
    assert "PreToolUse:Bash hook error" in world.notices()[0] and "Failed with non-blocking status code:" in world.notices()[0]
    assert world.notices()[0] in session.harness.announced


# -- placeholders ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("form", ["shell", "exec"])
async def test_placeholders_become_paths(world: Any, form: str) -> None:
    world.program("argv-dump", DUMP)
    names = ["CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA"]
    handler: dict[str, Any] = {"type": "command", "command": "argv-dump", "args": [f"${{{n}}}/x" for n in names]}
    if form == "shell":
        handler = {"type": "command", "command": "argv-dump " + " ".join(f"'${{{n}}}/x'" for n in names)}
    await stop(world, handler, plugin=True)
    root, data = world.root / "plugins" / "p-inline", world.config / "plugins" / "data" / "p-inline"
    assert argv(world) == [f"{world.cwd}/x", f"{root}/x", f"{data}/x"]
    assert data.is_dir()


async def test_a_folder_whose_name_is_code_runs_nothing(world: Any) -> None:
    """The value is left to the shell, which takes it from the environment."""
    world.program("argv-dump", DUMP)
    world.cwd = world.cwd / "x$(touch pwned)`touch pwned`\"'"
    world.cwd.mkdir()
    await stop(world, 'argv-dump "${CLAUDE_PROJECT_DIR}/a"')
    assert argv(world) == [f"{world.cwd}/a"]
    assert not list(world.root.rglob("pwned"))


async def test_user_options_reach_exec_form_and_the_environment_as_plain_text(world: Any) -> None:
    world.program("argv-dump", DUMP)
    world.settings("user", pluginConfigs={"p": {"options": {"webhook_url": "$(touch pwned)", "flag": True}}})
    world.settings("local", pluginConfigs={"p": {"options": {"webhook_url": "from the project"}}})
    config = {"level": {"type": "number", "title": "t", "description": "d", "default": 3}}
    dump = {"type": "command", "command": "argv-dump", "args": ["${user_config.webhook_url}", "${user_config.level}"]}
    await stop(world, dump, world.handler("e"), plugin=True, userConfig=config)
    assert argv(world) == ["$(touch pwned)", "3"]
    env = world.env("e")
    assert env["CLAUDE_PLUGIN_OPTION_WEBHOOK_URL"] == "$(touch pwned)"
    assert env["CLAUDE_PLUGIN_OPTION_FLAG"] == "true" and env["CLAUDE_PLUGIN_OPTION_LEVEL"] == "3"


@pytest.mark.parametrize("options", [{}, {"url": "http://x"}])
async def test_user_options_in_shell_form_are_refused_with_two_ways_out(world: Any, options: dict[str, str]) -> None:
    world.settings("user", pluginConfigs={"p": {"options": options}})
    await stop(world, f"{world.handler('h')} ${{user_config.url}}", plugin=True)
    assert world.ran() == []
    assert "'args'" in world.notices()[0] and "$CLAUDE_PLUGIN_OPTION_URL" in world.notices()[0]


async def test_an_option_without_a_value_stops_the_start(world: Any) -> None:
    await stop(world, {"type": "command", "command": "echo", "args": ["${user_config.url}"]}, plugin=True)
    assert "'url'" in world.notices()[0]


# -- the environment ---------------------------------------------------------------------------------------------------
async def test_the_documented_variables_are_set_and_others_are_taken_away(world: Any) -> None:
    os.environ.update(OTEL_FOO="y", OTEL_EXPORTER_OTLP_ENDPOINT="x", KEEP="z", CLAUDE_ENV_FILE="/mine",
                      CLAUDE_PLUGIN_ROOT="/other", ANTHROPIC_API_KEY="key", TRACEPARENT="00-1")
    await stop(world, world.handler("h"))
    env = world.env("h")
    assert {n: env.get(n) for n in ("CLAUDE_PROJECT_DIR", "CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_PID", "KEEP",
                                    "ANTHROPIC_API_KEY", "TRACEPARENT")} == {
        "CLAUDE_PROJECT_DIR": str(world.cwd), "CLAUDECODE": "1", "CLAUDE_CODE_CHILD_SESSION": "1", "CLAUDE_PID": str(os.getpid()),
        "KEEP": "z", "ANTHROPIC_API_KEY": "key", "TRACEPARENT": "00-1"}
    assert env["CLAUDE_CODE_SESSION_ID"] == world.inputs("h")[0]["session_id"]
    gone = {"OTEL_FOO", "OTEL_EXPORTER_OTLP_ENDPOINT", "CLAUDE_ENV_FILE", "CLAUDE_PLUGIN_ROOT", "CLAUDE_EFFORT", "CLAUDE_MODEL"}
    assert not gone & env.keys()


async def test_credentials_are_removed_on_request(world: Any) -> None:
    os.environ.update(CLAUDE_CODE_SUBPROCESS_ENV_SCRUB="1", ANTHROPIC_API_KEY="key", AWS_SECRET_ACCESS_KEY="s", KEEP="z")
    await stop(world, world.handler("h"))
    assert world.env("h").get("KEEP") == "z" and not {"ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY"} & world.env("h").keys()


async def test_effort_is_told_where_the_event_carries_it(world: Any) -> None:
    world.settings(hooks=world.hooks("Stop", world.handler("h")))
    session = world.start()
    session.effort = "high"
    await world.fire(session, STOP, stop_hook_active=False)
    assert world.env("h")["CLAUDE_EFFORT"] == "high" and world.inputs("h")[0]["effort"] == {"level": "high"}


# -- CLAUDE_ENV_FILE ---------------------------------------------------------------------------------------------------
FIELDS: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup"}, "Setup": {"trigger": "init"}, "CwdChanged": {"old_cwd": "/", "new_cwd": "/"},
    "FileChanged": {"file_path": "/f", "event": "change"}, "UserPromptSubmit": {"prompt": "p"},
    "PreToolUse": {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "i"}}


@pytest.mark.parametrize("event", FIELDS)
async def test_the_env_file_is_for_four_events(world: Any, event: str) -> None:
    world.settings(hooks=world.hooks(event, world.handler("h")))
    session = world.start()
    await world.fire(session, EVENTS[event], **FIELDS[event])
    has = event not in ("UserPromptSubmit", "PreToolUse")
    assert ("CLAUDE_ENV_FILE" in world.env("h")) is has
    assert session.environment.get("CLAUDE_ENV_FILE") == world.env("h").get("CLAUDE_ENV_FILE")


async def test_handlers_share_one_env_file_which_goes_with_the_session(world: Any) -> None:
    """It is private, keeps what it is given between events, and is empty again after a clear."""
    both = world.hooks("SessionStart", "echo 'export A=1' >> \"$CLAUDE_ENV_FILE\"", "echo 'export B=2' >> \"$CLAUDE_ENV_FILE\"")
    world.settings(hooks={**both, **world.hooks("CwdChanged", "echo 'export C=3' >> \"$CLAUDE_ENV_FILE\"")})
    session = world.start([text("done")])
    await world.prompt("go", session)
    await world.fire(session, EVENTS["CwdChanged"], **FIELDS["CwdChanged"])
    path = Path(session.environment["CLAUDE_ENV_FILE"])
    assert sorted(path.read_text().splitlines()) == ["export A=1", "export B=2", "export C=3"]
    assert path.stat().st_mode & 0o077 == 0
    await world.fire(session, EVENTS["SessionStart"], source="clear")
    assert not path.exists()
    path = Path(session.environment["CLAUDE_ENV_FILE"])
    assert sorted(path.read_text().splitlines()) == ["export A=1", "export B=2"]
    await session.close()
    assert not path.exists() and "CLAUDE_ENV_FILE" not in session.environment


async def test_exports_reach_later_bash_commands(world: Any) -> None:
    world.settings(hooks=world.hooks("SessionStart", "echo 'export K=v1' >> \"$CLAUDE_ENV_FILE\""))
    world.start([call("Bash", "b1", command="printf %s \"$K\""), text("done")], installed=["tools-shell"])
    run = await world.prompt()
    if "Bash" not in run.session.toolbox.by_name:
        pytest.skip("no plugin brings a Bash tool")
    assert "v1" in str(run.result_of("b1")["content"])
    await run.session.close()


# -- input, directory, time --------------------------------------------------------------------------------------------
async def test_the_input_is_one_line_that_read_can_read(world: Any) -> None:
    world.settings(hooks=world.hooks("UserPromptSubmit", "read -r line && printf '%s' \"$line\" > line.json; cat > rest"))
    world.start([text("done")])
    await world.prompt("tab\there \"quoted\" ünïcode\nnext")
    assert json.loads((world.cwd / "line.json").read_text())["prompt"] == "tab\there \"quoted\" ünïcode\nnext"
    assert (world.cwd / "rest").read_text() == ""


async def test_values_that_json_cannot_hold_do_not_break_the_input(world: Any) -> None:
    world.settings(hooks=world.hooks("PostToolUse", world.handler("h")))
    session = world.start()
    await world.fire(session, EVENTS["PostToolUse"], tool_name="X", tool_input={"a": "\ud83d"}, tool_use_id="i",
                     tool_response={"path": Path("/x"), "set": object})
    assert world.inputs("h")[0]["tool_input"] == {"a": "\ufffd"} and world.inputs("h")[0]["tool_response"]["path"] == "/x"


async def test_the_directory_follows_the_session_and_the_project_does_not(world: Any) -> None:
    (world.cwd / "src").mkdir()
    world.settings(hooks=world.hooks("Stop", f"pwd > {world.root}/pwd; {world.handler('h')}"))
    session = world.start()
    session.state = type(session.state)(cwd=str(world.cwd / "src"), model="m", permission_mode="default")
    await world.fire(session, STOP, stop_hook_active=False)
    assert (world.root / "pwd").read_text().strip() == str(world.cwd / "src")
    assert world.env("h")["CLAUDE_PROJECT_DIR"] == str(world.cwd)


async def test_a_directory_that_is_gone_is_replaced_by_the_project(world: Any) -> None:
    world.settings(hooks=world.hooks("Stop", "pwd > out"))
    session = world.start()
    session.state = type(session.state)(cwd=str(world.cwd / "gone"), model="m", permission_mode="default")
    await world.fire(session, STOP, stop_hook_active=False)
    assert (world.cwd / "out").read_text().strip() == str(world.cwd)


async def test_a_slow_guard_lets_the_call_go_and_is_announced(world: Any) -> None:
    assert GRACE_S == 5
    deny = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}
    slow = world.handler("h", json_out=deny, sleep_s=60)
    world.settings(hooks=world.hooks("PreToolUse", {"type": "command", "command": slow, "timeout": 0.5}))
    session = world.start()
    merged = await world.fire(session, PRE, tool_name="Bash", tool_input={}, tool_use_id="i")
    assert merged.decision is None and world.ended() == []
    assert "timed out after 0.5 s" in session.harness.announced[0]


async def test_handlers_start_together_and_all_run_to_the_end(world: Any) -> None:
    """As many as may run at once wait for each other, so none waits for another to end; a deny stops none."""
    assert PARALLEL >= 16
    (world.root / "meet").mkdir()
    meet = f"while [ $(ls {world.root}/meet | wc -l) -lt {PARALLEL} ]; do sleep 0.1; done"
    deny = world.handler("deny", exit=2)
    commands = [f"touch {world.root}/meet/{n}; {meet}; {deny if n == 3 else f'echo {n} >> {world.log}/ended'}"
                for n in range(PARALLEL)]
    world.settings(hooks=world.hooks("PreToolUse", *commands))
    merged = await world.fire(world.start(), PRE, tool_name="Bash", tool_input={}, tool_use_id="i")
    assert merged.decision == "deny" and len(world.ended()) == PARALLEL


async def test_the_clock_of_a_handler_that_waits_for_its_turn_has_not_started(world: Any) -> None:
    first = [{"type": "command", "command": f"sleep 1; echo {n} > /dev/null"} for n in range(PARALLEL)]
    last = {"type": "command", "command": world.handler("last", exit=2), "timeout": 0.9}
    world.settings(hooks=world.hooks("PreToolUse", *first, last))
    merged = await world.fire(world.start(), PRE, tool_name="Bash", tool_input={}, tool_use_id="i")
    assert merged.decision == "deny"


async def test_answers_come_in_configuration_order_with_their_rank(world: Any) -> None:
    """The rewrite that ended last counts, whatever its place; the other is named."""
    def rewrite(value: str) -> dict[str, Any]:
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": value},
                                       "additionalContext": value}}
    slow, fast = world.handler("slow", sleep_s=0.5, json_out=rewrite("slow")), world.handler("fast", json_out=rewrite("fast"))
    for order in ((slow, fast), (fast, slow)):
        world.settings(hooks=world.hooks("PreToolUse", *order))
        merged = await world.fire(world.start(), PRE, tool_name="Bash", tool_input={}, tool_use_id="i")
        assert merged.updated_input.value == {"command": "slow"} and "handler-fast" in merged.updated_input.losers[0]
        assert [c.text for c in merged.contexts] == ["slow" if o is slow else "fast" for o in order]
