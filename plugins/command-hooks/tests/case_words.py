"""What the contract's cases for hooks say in words: how to do it."""

from __future__ import annotations

import io
import json
import os
import time
from contextlib import chdir, redirect_stdout
from typing import Any

import anyio
from kernel_command_hooks.command import HooksCommand
from kernel_command_hooks.facts import FACTS
from kernel_command_hooks.hooks import STATE

from kernel import EVENTS, ModelError
from kernel.testing import Turn, text

from .case_driver import CAN_JUDGE, MissingPlugin, Play


# -- steps and actions that are told in words ---------------------------------------------------------------------------
def bash(command: str, **more: Any) -> dict[str, Any]:
    return {"name": "Bash", "input": {"command": command}, **more}


def read_call(path: str = "/repo/a") -> dict[str, Any]:
    return {"name": "Read", "input": {"file_path": path}}


async def prompt(play: Play, what: str = "go") -> None:
    play.run = await play.world.prompt(what, play.session)


async def one_call(play: Play, *calls: dict[str, Any]) -> None:
    """A prompt whose answer is one call, in the session that is open."""
    if play.session is None:
        play.open([])
    play.world.kit.model.turns += [play.calls(*calls), text("done")]
    await prompt(play)


async def _managed_shape(play: Play) -> None:
    if not CAN_JUDGE:
        raise MissingPlugin("the plugin permissions is not here")
    play.options["allowed_tools"] = []
    await one_call(play, {"name": "WebFetch", "input": {"url": "http://x", "prompt": "p"}})
    assert play.tools["WebFetch"].inputs == []
    assert any("managed-settings.json" in t for t in play.session.harness.announced)


async def _empty_list(play: Play) -> None:
    play.open([text("done")])
    await prompt(play)
    assert play.world.plugins[0].state == "ready" and len(play.world.plugins[0].warnings) == 1
    assert not play.session.plugin_state[STATE].handlers


async def _twice(play: Play) -> None:
    await one_call(play, bash("ls"))
    await one_call(play, bash("ls"))


async def _env_events(play: Play) -> None:
    await one_call(play, bash("cd src"))
    await play.world.fire(play.session, EVENTS["CwdChanged"], old_cwd=str(play.world.cwd), new_cwd=str(play.world.cwd / "src"))
    assert [("CLAUDE_ENV_FILE" in play.world.env(id)) for id in "abcd"] == [True, True, False, False]


def _move(play: Play, folder: str) -> None:
    play.session.state = type(play.session.state)(cwd=str(play.world.cwd / folder), model="m", permission_mode="default")


async def _cd(play: Play) -> None:
    (play.world.cwd / "src").mkdir()
    play.open([])
    _move(play, "src")
    await one_call(play, read_call())


async def _gone(play: Play) -> None:
    play.open([text("done")])
    _move(play, "d")
    await prompt(play)


async def _async_turns(play: Play) -> None:
    await one_call(play, {"name": "Write", "input": {"file_path": "/repo/a", "content": ""}})
    await play.settle()
    play.world.kit.model.turns += [text("done")]
    await prompt(play)


async def _wrong_type(play: Play) -> None:
    await _async_turns(play)
    assert any("systemMessage" in line for line in play.world.debug)


async def _budget(play: Play) -> None:
    began = time.monotonic()
    await Play.drive(play)
    assert (play.world.ended() == ["a"]) is ("raised" in play.id and "not" not in play.id)
    assert time.monotonic() - began < 10


async def _group(play: Play) -> None:
    play.options["include_hook_events"] = True
    await Play.drive(play)
    assert [m["outcome"] for m in play.world.hook_messages("hook_response")] == ["cancelled"]


async def _table(play: Play) -> None:
    assert {t: FACTS["UserPromptSubmit"].default_timeout(t) for t in ("command", "http", "mcp_tool", "prompt", "agent")} == {
        "command": 30, "http": 30, "mcp_tool": 30, "prompt": 30, "agent": 60}
    assert FACTS["MessageDisplay"].default_timeout("http") == 10 and FACTS["Stop"].default_timeout("command") == 600


async def _two_touches(play: Play) -> None:
    await one_call(play, bash("touch a"))
    await one_call(play, bash("touch b"))


async def _read_then_touch(play: Play) -> None:
    await one_call(play, read_call(str(play.world.cwd / "a")))
    await one_call(play, bash("touch a"))


async def _bypass(play: Play) -> None:
    await one_call(play, bash("touch a"))
    assert play.tools["Bash"].inputs and play.session.state.permission_mode == "default"
    play.asked.clear()
    await one_call(play, {"name": "Write", "input": {"file_path": str(play.world.cwd / "b"), "content": ""}})
    assert play.asked


async def _no_auto(play: Play) -> None:
    for one in (bash("curl x"), {"name": "Write", "input": {"file_path": "/repo/a", "content": ""}}, bash("touch a")):
        await one_call(play, one)


async def _cancel(play: Play) -> None:
    play.open([play.calls(bash("sleep 60")), text("done")])

    async def wait(input: Any, context: Any) -> Any:
        play.session.interrupt()
        await anyio.sleep(60)
    play.tools["Bash"].call = wait  # type: ignore[method-assign]
    await prompt(play)


async def _two_messages(play: Play) -> None:
    play.open([play.calls(read_call()), play.calls({"name": "Grep", "input": {"pattern": "x"}}), text("done")])
    await prompt(play)


async def _erased(play: Play) -> None:
    play.open([text("done")])
    await prompt(play, "my key is K1")
    play.world.handler("a")
    await prompt(play, "hello")


async def _stop_again(play: Play) -> None:
    play.open([text("one"), text("two")])
    play.world.handler("a", json_out=play.given["hooks"][0]["does"]["json"])
    await prompt(play)
    assert [i["stop_hook_active"] for i in play.world.inputs("a")][:2] == [False, True]


async def _cap(play: Play) -> None:
    play.open([text(str(n)) for n in range(20)])
    await prompt(play)
    assert len(play.world.ran()) in (8, 9) and any("STOP_HOOK_BLOCK_CAP" in n for n in play.world.notices())


async def _api_error(play: Play) -> None:
    os.environ["CLAUDE_CODE_MAX_RETRIES"] = "0"
    play.open([Turn(fail=ModelError("limit", kind="rate_limit_error", status=429))])
    await prompt(play)


async def _prompt_ids(play: Play) -> None:
    play.open([])
    await one_call(play, bash("ls"))
    await one_call(play, bash("ls"))
    ids = {id: [i.get("prompt_id") for i in play.world.inputs(id)] for id in "sup"}
    assert ids["s"] == [None] and ids["u"] == ids["p"] and len(set(ids["u"])) == 2 and None not in ids["u"]


async def _directory(play: Play) -> None:
    play.open([text("done")])
    await play.world.fire(play.session, EVENTS["DirectoryAdded"], directory="/third", source="slash_command")
    await play.settle()
    await prompt(play)


async def _worktree(play: Play) -> None:
    play.open([])
    merged = await play.world.fire(play.session, EVENTS["WorktreeCreate"], name="bold-oak" if "last-line" in play.id else "x")
    if "fails" in play.id:
        assert merged.blocked
    else:
        assert not merged.blocked and merged.last["worktree_path"] in ("/wt/bold-oak", "/wt/x")
    if "http" in play.id:
        play.server.answer("/w", b"", 500)
        assert (await play.world.fire(play.session, EVENTS["WorktreeCreate"], name="x")).blocked


async def _worktree_remove(play: Play) -> None:
    play.open([])
    await play.world.fire(play.session, EVENTS["WorktreeRemove"], worktree_path="/wt/x")


async def _untrusted(play: Play) -> None:
    play.open([])
    await play.session.start()


async def _rewake_in_turn(play: Play) -> None:
    play.open([])
    await one_call(play, bash("ls"))
    await play.settle()
    play.world.kit.model.turns += [text("done")]
    await prompt(play)


async def _setup(play: Play) -> None:
    for trigger in (None, "init", "maintenance", "init"):
        play.options["setup_trigger"] = trigger
        await play.open([]).start()


async def _first_message(play: Play) -> None:
    play.open([text("one"), text("two")])
    await play.session.start()
    assert play.session.initial_message == "first"
    await prompt(play, play.session.initial_message)
    await prompt(play, "second")


async def _effort(play: Play) -> None:
    play.open([play.calls(read_call()), text("done")])
    play.session.effort = "high"
    await prompt(play)


async def _cwd_changed(play: Play) -> None:
    await one_call(play, bash("cd src"))
    await play.world.fire(play.session, EVENTS["CwdChanged"], old_cwd="/a", new_cwd="/b")


async def _teardown(play: Play) -> None:
    await Play.drive(play)
    began = time.monotonic()
    await play.session.close()
    assert time.monotonic() - began < 10 and play.world.ended() == []
    assert [m["outcome"] for m in play.world.hook_messages("hook_response")] == ["cancelled"]


async def _real_tools(play: Play) -> None:
    """With the real file tools, whose paths are absolute before hooks see them."""
    play.real = ["tools-files"]
    await Play.drive(play)
    paths = [i["tool_input"]["file_path"] for i in play.world.inputs(play.given["hooks"][0]["id"])]
    assert paths and all(os.path.isabs(p) and "~" not in p and ".." not in p for p in paths)


async def _exports(play: Play) -> None:
    play.real = ["tools-shell"]
    await Play.drive(play)
    assert "v1" in str(play.run.result_of("toolu_0_0")["content"])  # type: ignore[union-attr]


async def _listed(play: Play) -> None:
    roots = [a for p in play.world.plugins for a in ("--plugin-dir", str(p.root))]
    with chdir(play.world.cwd), redirect_stdout(io.StringIO()) as out:
        HooksCommand().run(["list", "--json", *roots])
    rows = json.loads(out.getvalue())["hooks"]
    assert sorted((r["event"], r["matcher"], r["type"], r["source"]) for r in rows) == [
        ("PreToolUse", "Bash", "http", "Project"), ("Stop", None, "command", "Plugin"), ("Stop", None, "command", "User")]
    assert all(r["text"] for r in rows)


DRIVERS = {
    "config-matcher-array-managed-drops-hooks-key": _managed_shape, "config-plugin-hooks-file-empty-list": _empty_list,
    "source-once-ignored-in-settings": _twice,
    "cmd-env-file-only-for-four-events": _env_events, "cmd-cwd-follows-cd-project-dir-does-not": _cd,
    "cmd-cwd-deleted-falls-back": _gone, "async-output-next-turn-model-only": _async_turns,
    "async-wrong-type-field-dropped": _wrong_type, "end-budget-raised-by-settings-timeout": _budget,
    "end-budget-not-raised-by-plugin-timeout": _budget, "timeout-kills-the-process-group": _group,
    "timeout-default-table": _table, "permreq-updated-permissions-session-rule": _two_touches,
    "permreq-only-when-a-decision-is-needed": _read_then_touch, "permreq-bypass-mode-not-available": _bypass,
    "permdenied-only-in-auto-mode": _no_auto, "failure-not-on-user-cancel": _cancel, "batch-single-call-too": _two_messages,
    "prompt-block-erases": _erased, "stop-block-continues-with-reason": _stop_again,
    "stop-additional-context-is-feedback": _stop_again, "stop-block-cap": _cap, "stop-not-on-api-error": _api_error,
    "input-prompt-id": _prompt_ids,
    "directory-added-message-goes-to-model": _directory, "worktree-create-last-line-is-path": _worktree,
    "worktree-create-any-nonzero-fails": _worktree, "worktree-create-http-path": _worktree,
    "worktree-remove-cannot-block": _worktree_remove, "trust-interactive-holds-all-settings-hooks": _untrusted,
    "async-rewake-stdout-when-stderr-empty": _rewake_in_turn,
    "setup-only-with-flags": _setup, "start-initial-user-message-print": _first_message,
    "input-effort-and-variable": _effort, "cwd-changed-cannot-block": _cwd_changed,
    "async-killed-at-print-teardown": _teardown, "post-input-fields": _real_tools,
    "input-file-path-absolute-for-file-tools": _real_tools, "cmd-env-file-exports-reach-bash": _exports,
    "diagnostics-list-shows-sources": _listed,
}
