"""Cases of the contract whose host is played here, or is a plugin of its own: how to do them, and how to check them."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import anyio
from kernel_command_hooks.hooks import CALLBACKS, STATE
from kernel_command_hooks.running import TERMINAL

from kernel import EVENTS
from kernel.testing import text

from .case_driver import MissingPlugin, Play
from .case_hosts import Judge, callback
from .case_words import bash, one_call, prompt, read_call


# -- evaluating models, bridges, programs ------------------------------------------------------------------------------
def _evaluator_prompt(play: Play) -> str:
    model = play.world.kit.model
    assert isinstance(model, Judge) and len(model.asked) == 1 and model.asked[0]["tools"] == []
    found: str = model.asked[0]["messages"][0]["content"][0]["text"]
    return found


def _appended(play: Play) -> bool:
    start, _, rest = _evaluator_prompt(play).partition("\n\n")
    return start == "All done?" and json.loads(rest)["hook_event_name"] == "Stop"


def _escaped(play: Play) -> bool:
    found = _evaluator_prompt(play)
    return found.startswith("Cost $1.00: {") and json.loads(found.removeprefix("Cost $1.00: "))["hook_event_name"] == "Stop"


def _bridge_got(play: Play) -> bool:
    return play.bridge is not None and play.bridge.inputs == [("scan", "check", {"path": str(play.world.cwd / "a")})]


def _called_once(play: Play) -> bool:
    (input, id), = play.called
    return id == "toolu_0_0" == input["tool_use_id"] and input["tool_name"] == "Write"


def _error_says(*texts: str) -> Any:
    def check(play: Play) -> bool:
        block = play.run.result_of("toolu_0_0")  # type: ignore[union-attr]
        return block["is_error"] and all(t in block["content"] for t in texts) and "user" not in block["content"]
    return check


async def _late_prompt(play: Play) -> None:
    play.open([text("two is answered")])
    await prompt(play, "one")
    assert play.world.kit.model.requests == []
    assert play.run is not None
    assert "UserPromptSubmit" in play.run.result.result and "timed out after 1 s" in play.run.result.result
    play.session.plugin_state[CALLBACKS] = {"UserPromptSubmit": [{"callback": callback(play.world, "s", {}, play.called)}]}
    await prompt(play, "two")
    assert play.run.result.result == "two is answered"


# -- sessions ----------------------------------------------------------------------------------------------------------
async def _wakes_idle(play: Play) -> None:
    """An idle front end, played: it is told that there is something, and starts a turn."""
    play.open([text("one"), text("two")])
    woken = anyio.Event()
    play.session.inbox.listen(woken.set)
    await prompt(play)
    with anyio.fail_after(10):
        await woken.wait()
    play.world.handler("a")  # the next Stop finds a handler that has nothing to say
    await play.session.submit(None, origin=play.session.inbox.origin)
    assert "deploy failed" in json.dumps(play.world.kit.model.requests[1], ensure_ascii=False)


async def _sequences(play: Play) -> None:
    written: list[str] = []
    play.open([])
    play.session.plugin_state[TERMINAL] = written.append
    await play.world.fire(play.session, EVENTS["Notification"], **play.when["input"])
    await play.settle()
    assert sorted(play.world.ran()) == ["a", "b", "c"] and written == ["\x1b]777;notify;t;b\x07"]


async def _put_off(play: Play) -> None:
    play.real = ["sessions"]
    play.options["persist"] = True
    await Play.drive(play)
    assert play.run is not None
    result, id = play.run.result, play.session.id
    await play.session.close()
    assert result.stop_reason == "tool_deferred"
    assert result.deferred_tool_use == {"id": "toolu_q", "name": "AskUserQuestion", "input": {"questions": []}}
    play.options["resume"] = id
    play.open([])
    again = await play.session.submit(None)
    assert again.stop_reason == "tool_deferred" and [i["tool_use_id"] for i in play.world.inputs("a")] == ["toolu_q", "toolu_q"]


async def _background_shell(play: Play) -> None:
    play.real = ["tools-shell"]
    play.open([play.calls(bash("sleep 30 # deploy", background=True)), text("done for now")])
    play.world.kit.model.turns[0][0]["input"]["run_in_background"] = True
    await prompt(play)
    (task,), crons = play.world.inputs("a")[-1]["background_tasks"], play.world.inputs("a")[-1]["session_crons"]
    assert task["type"] == "shell" and task["command"] == "sleep 30 # deploy" and crons == []


# -- what the model says -----------------------------------------------------------------------------------------------
def _says(words: str) -> Any:
    async def drive(play: Play) -> None:
        play.open([text(words), text("more")])
        await prompt(play)
        if "replaces" in play.id:
            await prompt(play, "and?")
            assert words in play.model_saw and words in str(
                [e.message for e in play.session.transcript.entries])  # type: ignore[attr-defined]
    return drive


# -- what changes on disk ----------------------------------------------------------------------------------------------
def _watching(play: Play, *files: str) -> None:
    """Look often, at files that are there when the session starts."""
    for file in files:
        (play.world.cwd / file).parent.mkdir(parents=True, exist_ok=True)
        (play.world.cwd / file).write_text("before")
    own = {scope: dict(values) for scope, values in play.given.get("settings", {}).items()}
    path = play.world.config / "settings.json"
    found = json.loads(path.read_text()) if path.exists() else own.get("user", {})
    path.write_text(json.dumps({**found, "kernel": {"hooks": {"watchSeconds": 0.02}}}))


async def _until(what: Any) -> None:
    with anyio.fail_after(10):
        while not what():  # noqa: ASYNC110
            await anyio.sleep(0.02)


async def _looked_again(play: Play) -> None:
    """A whole round of the watcher, so that nothing is left to be seen."""
    await play.session.plugin_state[STATE].watcher.look()


async def _edited(play: Play) -> None:
    _watching(play)
    play.open([])
    await one_call(play, bash("ls"))
    before = play.session.settings
    play.world.settings(hooks=play.world.hooks("PreToolUse", play.world.handler("a", exit=2, stderr="no"), matcher="Bash"))
    await _until(lambda: play.session.settings is not before)
    await one_call(play, bash("ls"))
    assert len(play.tools["Bash"].inputs) == 1 and play.world.ran() == ["a"]


async def _config_change(play: Play) -> None:
    """Another process adds an allow rule; only a change of managed settings counts although the hook refuses it."""
    _watching(play)
    policy = "policy" in play.id
    path = play.world.managed / "managed-settings.json" if policy else play.world.cwd / ".claude" / "settings.json"
    if policy:
        path.write_text(json.dumps({"permissions": {"allow": ["Bash(date)"]}}))
    play.options |= {"allowed_tools": ["Read"], "permission_mode": "default"}
    play.open([])
    await one_call(play, read_call())
    path.write_text(json.dumps({**json.loads(path.read_text()), "permissions": {"allow": ["Bash(touch *)"]}}))
    await _until(lambda: play.world.ended())
    await _looked_again(play)
    await one_call(play, bash("touch a"))
    assert bool(play.tools["Bash"].inputs) is policy and play.world.ran() == ["a"]


async def _cd_watches(play: Play) -> None:
    _watching(play, "src/.envrc")
    play.real = ["tools-shell"]
    await one_call(play, bash("cd src"))
    (play.world.cwd / "src/.envrc").write_text("after it")
    await _until(lambda: "f" in play.world.ended())
    await _looked_again(play)
    (changed,), (moved,) = play.world.inputs("f"), play.world.inputs("c")
    assert (moved["old_cwd"], moved["new_cwd"]) == (str(play.world.cwd), str(play.world.cwd / "src"))
    assert (changed["file_path"], changed["event"]) == (str(play.world.cwd / "src/.envrc"), "change")


async def _literal_names(play: Play) -> None:
    _watching(play, ".env", ".envrc", "sub/.env")
    play.open([])
    await play.session.start()
    (play.world.cwd / ".env").write_text("after it")
    await _until(lambda: len(play.world.ended()) == 1)
    (play.world.cwd / "sub/.env").write_text("after it")
    (play.world.cwd / ".envrc").unlink()
    await _until(lambda: len(play.world.ended()) == 2)
    await _looked_again(play)
    assert [i["event"] for i in play.world.inputs("a")] == ["change", "unlink"]


async def _any_writer(play: Play) -> None:
    _watching(play, "data.csv")
    play.real = ["tools-shell"]
    await Play.drive(play)
    await _until(lambda: "f" in play.world.ended())


# -- tasks and teammates -----------------------------------------------------------------------------------------------
async def _with_tasks(play: Play) -> None:
    _needs("kernel_tools_tasks")
    play.real = ["tools-tasks"]
    play.open([play.calls({"name": "TaskCreate", "input": {"subject": "first", "description": "d"}}), text("done")])
    if "completed" in play.id:
        await prompt(play)
    else:
        play.world.kit.model.turns.clear()
    play.world.kit.model.turns += [[{"type": "tool_use", "id": "toolu_task", **play.when["tool_call"]}],
                                   [{"type": "tool_use", "id": "toolu_list", "name": "TaskList", "input": {}}], text("done")]
    await prompt(play)
    assert play.run is not None
    listed, refused = str(play.run.result_of("toolu_list")["content"]), play.run.result_of("toolu_task").get("is_error", False)
    expected = {"task-created-block": (True, False), "task-created-continue-false-ignored": (False, True),
                "task-completed-exit-2": (True, True)}[play.id]
    assert (refused, "do it" in listed or "first" in listed) == expected
    assert "completed" not in listed


async def _teammate(play: Play) -> None:
    play.open([])
    play.merged = await play.world.fire(play.session, EVENTS["TaskCompleted"], task_id="1", task_subject="s",
                                        teammate_name="builder")
    assert play.merged.stopped


async def _leave_plan_mode(play: Play) -> None:
    _needs("kernel_tools_user")
    play.real = ["tools-user"]
    play.options["permission_mode"] = play.given["permissions"]["before_plan"]
    play.open([[{"type": "tool_use", "id": "toolu_in", "name": "EnterPlanMode", "input": {}}],
               [{"type": "tool_use", "id": "toolu_out", "name": "ExitPlanMode", "input": {}}], text("done")])
    await prompt(play)
    assert play.session.state.permission_mode == "acceptEdits"
    assert {"plan", "planFilePath"} <= play.world.inputs("a")[-1]["tool_input"].keys()


def _needs(package: str) -> None:
    if find_spec(package) is None or find_spec(f"{package}.plugin") is None:
        raise MissingPlugin(f"{package} is not installed")


PLAYED = {
    "sdk-callback-timeout-blocks-prompt": _late_prompt,
    "async-rewake-exit-2-wakes-idle-session": _wakes_idle, "universal-terminal-sequence-allowlist": _sequences,
    "defer-ends-print-run": _put_off, "stop-input-fields": _background_shell,
    "display-replaces-screen-only": _says("host db1.internal"),
    "display-print-mode-one-call-per-message": _says("\n".join(f"line {n}" for n in range(40))),
    "display-failure-shows-original": _says("hi there"),
    "task-created-block": _with_tasks, "task-created-continue-false-ignored": _with_tasks, "task-completed-exit-2": _with_tasks,
    "task-completed-by-teammate-stop-continue-false": _teammate,
    "config-edit-picked-up-live": _edited, "config-change-block": _config_change,
    "config-change-policy-cannot-be-blocked": _config_change, "cwd-changed-watch-paths": _cd_watches,
    "file-changed-literal-names": _literal_names, "file-changed-by-any-writer": _any_writer,
    "perm-exit-plan-mode-approved-by-permission-request": _leave_plan_mode,
}

PLAYED_OUTCOMES: dict[str, Any] = {
    "prompt-arguments-appended-when-missing": _appended, "prompt-arguments-and-escape": _escaped,
    "mcp-hook-text-read-like-stdout": _bridge_got,
    "mcp-hook-server-not-connected": lambda p: p.bridge.inputs == [("scan", "check", {})],
    "sdk-callback-deny": _called_once,
    "sdk-callback-timeout-blocks-tool": _error_says("timed out after 1 s"),
    "sdk-callback-error-is-like-a-timeout": _error_says("KeyError: x"),
    "sdk-ask-reason-reaches-permission-callback": lambda p: p.asked == ["Bash touches prod"],
    "teammate-idle-continue-false": lambda p: p.merged.stopped,
    "stop-input-fields": lambda p: p.session.plugin_state[STATE] is not None,
}
