"""Files and settings that change while a session runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from kernel_command_hooks.hooks import STATE
from kernel_command_hooks.watch import Marks, look_at

from kernel import EVENTS, Session

from .conftest import World

pytestmark = pytest.mark.anyio
PRE = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t"}


def live(world: World, **options: Any) -> Session:
    """A session that lives longer than one prompt, in a trusted folder."""
    world.trust()
    return world.start(print_mode=False, **options)


async def look(session: Session) -> None:
    await session.plugin_state[STATE].watcher.look()


async def begin(session: Session) -> None:
    """Start it with nobody looking but the test."""
    await session.start()
    session.plugin_state[STATE].watcher.stop()


async def denied(world: World, session: Session) -> bool:
    return (await world.fire(session, EVENTS["PreToolUse"], **PRE)).decision == "deny"


# -- files ---------------------------------------------------------------------------------------------------------------
def test_changes_are_told_once_with_what_happened(tmp_path: Any) -> None:
    a, b, c = (str(tmp_path / name) for name in "abc")
    for path in (a, b):
        open(path, "w").close()
    marks = Marks()
    marks.aim([a, b, c])
    assert marks.changes(look_at(marks.paths)) == []
    os.write(fd := os.open(a, os.O_WRONLY), b"x")
    os.close(fd)
    os.unlink(b)
    open(c, "w").close()
    assert sorted(marks.changes(look_at(marks.paths))) == [(a, "change"), (b, "unlink"), (c, "add")]
    assert marks.changes(look_at(marks.paths)) == []
    before = look_at(marks.paths)
    marks.aim([c])
    os.unlink(c)
    assert marks.changes({**before, **look_at([c])}) == [(c, "unlink")]


def test_paths_that_cannot_be_are_no_files(tmp_path: Any) -> None:
    assert list(look_at(["/no/such/file", "a\0b", "x" * 5000, "/proc/1/root/x"]).values()) == [None] * 4


async def test_a_hook_names_the_files_to_watch_and_another_one_replaces_them(world: World) -> None:
    first, second = world.cwd / "first", world.cwd / "second"
    say = {"hookSpecificOutput": {"hookEventName": "SessionStart",
                                  "watchPaths": [str(first), "relative", f"{world.cwd}/x/../first"]}}
    replace = {"hookSpecificOutput": {"hookEventName": "FileChanged", "watchPaths": [str(second)]}}
    world.settings(hooks={**world.hooks("SessionStart", world.handler("s", json_out=say)),
                          **world.hooks("FileChanged", world.handler("f", json_out=replace))})
    session = live(world)
    await begin(session)
    for path in (first, second):
        path.write_text("x")
    await look(session)
    assert [i["file_path"] for i in world.inputs("f")] == [str(first)]
    second.write_text("changed")
    first.write_text("changed")
    await look(session)
    assert [(i["file_path"], i["event"]) for i in world.inputs("f")] == [(str(first), "add"), (str(second), "change")]
    assert any("not absolute" in line for line in world.debug)


async def test_an_empty_list_ends_it_and_matchers_stay(world: World) -> None:
    say = {"hookSpecificOutput": {"hookEventName": "CwdChanged", "watchPaths": []}}
    world.settings(hooks={**world.hooks("CwdChanged", world.handler("c", json_out=say)),
                          **world.hooks("FileChanged", world.handler("f"), matcher=".env")})
    session = live(world)
    await begin(session)
    watcher = session.plugin_state[STATE].watcher
    watcher.ask([str(world.cwd / "dynamic")])
    assert len(watcher._files.paths) == 2
    await world.fire(session, EVENTS["CwdChanged"], old_cwd="/a", new_cwd="/b")
    assert watcher._files.paths == [str(world.cwd / ".env")]


@pytest.mark.parametrize(("hooks", "options", "watches"), [
    ({}, {}, False), ({"Stop": ["true"]}, {}, False), ({"FileChanged": ["true"]}, {}, False),
    ({"FileChanged": ["true"], "matcher": "a"}, {}, True), ({}, {"input_format": "stream-json"}, True)])
async def test_nothing_is_looked_at_where_nobody_asked(world: World, hooks: dict[str, Any], options: dict[str, Any],
                                                       watches: bool) -> None:
    """A run with one prompt watches what a hook names; a session that goes on watches settings too."""
    matcher = hooks.pop("matcher", None)
    for event, commands in hooks.items():
        world.settings(hooks=world.hooks(event, *commands, matcher=matcher))
    session = world.start(print_mode=True, **options)
    await session.start()
    watcher = session.plugin_state[STATE]._watcher
    assert (watcher is not None and watcher._task is not None) is watches
    await session.close()
    await anyio.lowlevel.checkpoint()
    assert watcher is None or watcher._task is None or watcher._task.cancelling()


@pytest.mark.parametrize(("value", "seconds"), [(0.5, 0.5), (0, 1), (-1, 1), ("x", 1), (True, 1), (1e-9, 0.02), (None, 1)])
async def test_how_often_it_looks_is_a_setting(world: World, value: Any, seconds: float) -> None:
    world.settings("user", kernel={"hooks": {"watchSeconds": value}})
    session = live(world)
    await begin(session)
    assert session.plugin_state[STATE].watcher.seconds == seconds


# -- settings --------------------------------------------------------------------------------------------------------------
def guard(world: World, id: str = "g") -> dict[str, Any]:
    return world.hooks("PreToolUse", world.handler(id, exit=2, stderr="no"))


@pytest.mark.parametrize("scope", ["user", "project", "local", "managed"])
async def test_every_settings_file_is_followed(world: World, scope: str) -> None:
    world.settings("managed", env={"A": "1"})
    session = live(world)
    await begin(session)
    assert not await denied(world, session)
    path = world.settings(scope, hooks=guard(world))
    await look(session)
    assert await denied(world, session)
    path.unlink()
    await look(session)
    assert not await denied(world, session)


@pytest.mark.parametrize("content", [
    "", "{", '{"hooks": 3}', "[]", '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command"}]}]}}'])
@pytest.mark.parametrize("scope", ["project", "managed"])
async def test_a_file_that_cannot_be_read_any_more_keeps_its_guard(world: World, scope: str, content: str) -> None:
    """An editor that is half through must not switch it off."""
    path = world.settings(scope, hooks=guard(world))
    session = live(world)
    await begin(session)
    path.write_text(content)
    await look(session)
    assert await denied(world, session)
    assert any(str(path) in text for text in session.harness.announced)
    path.write_text(json.dumps({"hooks": {}}))
    await look(session)
    assert not await denied(world, session)


async def test_what_a_hook_kept_out_stays_out_until_the_file_changes_again(world: World) -> None:
    say = world.log / "say"
    say.write_text("exit 2")
    world.settings("user", hooks=world.hooks("ConfigChange", f". {say}"))
    session = live(world)
    await begin(session)
    path = world.settings(hooks=guard(world))
    await look(session)
    assert not await denied(world, session)
    world.settings("local", env={"A": "1"})
    say.write_text("exit 0")
    await look(session)
    assert not await denied(world, session), "another file's change brings nothing along"
    path.write_text(path.read_text() + "\n")
    await look(session)
    assert await denied(world, session)


async def test_a_hook_can_keep_a_file_from_being_taken_away(world: World) -> None:
    path = world.settings(hooks=guard(world))
    world.settings("user", hooks=world.hooks("ConfigChange", "exit 2"))
    session = live(world)
    await begin(session)
    path.unlink()
    await look(session)
    assert await denied(world, session)


async def test_a_change_of_nothing_is_none(world: World) -> None:
    path = world.settings(hooks=world.hooks("ConfigChange", world.handler("c")))
    session = live(world)
    await begin(session)
    path.write_text(path.read_text() + "\n \n")
    os.utime(path)
    await look(session)
    assert world.ran() == []


@pytest.mark.parametrize(("scope", "source"), [
    ("user", "user_settings"), ("project", "project_settings"), ("local", "local_settings"), ("managed", "policy_settings")])
async def test_the_event_names_the_source_and_the_file(world: World, scope: str, source: str) -> None:
    world.settings("managed", env={"A": "1"}, hooks=world.hooks("ConfigChange", world.handler("c"), matcher=source))
    session = live(world)
    await begin(session)
    found = world.managed / "managed-settings.json" if scope == "managed" else None
    values = {**(json.loads(found.read_text()) if found else {}), "cleanupPeriodDays": 3}
    path = world.settings(scope, **values)
    await look(session)
    assert [(i["source"], i["file_path"]) for i in world.inputs("c")] == [(source, str(path))]


async def test_sources_that_were_not_wanted_are_not_followed(world: World) -> None:
    session = live(world, setting_sources=("user",))
    await begin(session)
    world.settings("project", hooks=guard(world))
    world.settings("local", hooks=guard(world))
    await look(session)
    assert not await denied(world, session)


async def test_variables_of_changed_settings_reach_handlers(world: World) -> None:
    world.settings("user", hooks=world.hooks("PreToolUse", world.handler("h")))
    session = live(world)
    await begin(session)
    world.settings("project", env={"FROM_SETTINGS": "v2"})
    await look(session)
    await denied(world, session)
    assert world.env("h")["FROM_SETTINGS"] == "v2"


async def test_a_failure_of_looking_is_announced_and_looking_goes_on(world: World) -> None:
    world.settings("user", kernel={"hooks": {"watchSeconds": 0.02}},
                   hooks=world.hooks("FileChanged", world.handler("f"), matcher="a"))
    session = live(world)
    await session.start()
    watcher = session.plugin_state[STATE].watcher
    look_once: Callable[[], Any] = watcher.look
    failures = iter([RuntimeError("lost")])

    async def failing() -> None:
        for error in failures:
            raise error
        await look_once()

    watcher.look = failing
    (world.cwd / "a").write_text("x")
    with anyio.fail_after(10):
        while not world.ended():  # noqa: ASYNC110
            await anyio.sleep(0.02)
    assert any("watching files failed: RuntimeError: lost" in t for t in session.harness.announced)
    await session.close()
