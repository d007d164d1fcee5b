"""The working directory: what a command's `cd` comes to."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from kernel_tools_shell import plugin

from kernel import CwdChanged
from kernel.testing import Kit, call, module, text

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def folders(tmp_path: Path) -> None:
    (tmp_path / "sub" / "deep").mkdir(parents=True)


@pytest.mark.parametrize("command", [
    "cd sub", "cd sub && true", "cd sub; exit 0", "pushd sub", "set -e; cd sub; true", "eval 'cd sub'", "cd sub; set -x",
    "cd sub; set -v", "cd sub; sleep 0.01 &", "trap 'echo bye' EXIT; cd sub", "set -C; cd sub",
    "if cd sub; then :; fi", "go() { cd sub; }; go",
])
async def test_a_cd_inside_the_project_persists(box: Any, command: str) -> None:
    assert not (await box.bash(command)).failed
    assert box.session.state.cwd == str(box.workspace / "sub")
    assert await box.text("pwd") == str(box.workspace / "sub")


@pytest.mark.parametrize("command", ["cd sub; exit 3", "cd sub; false", "set -e; cd sub; false; echo never", "cd sub; ! true"])
async def test_a_failing_command_moves_the_session_too(box: Any, command: str) -> None:
    assert (await box.bash(command)).failed
    assert box.session.state.cwd == str(box.workspace / "sub")


@pytest.mark.parametrize("command", ["(cd sub)", "bash -c 'cd sub'", "cd sub | cat", "cd none", "if", "cd sub; exec true",
                                     "cd sub; kill -9 $$"])
async def test_what_does_not_move_the_shell_does_not_move_the_session(box: Any, command: str) -> None:
    await box.bash(command)
    assert box.session.state.cwd == str(box.workspace)


@pytest.mark.parametrize("outside", ["/", "..", "/usr"])
async def test_a_cd_out_of_the_project_is_reset_and_said(box: Any, outside: str) -> None:
    await box.bash("cd sub")
    result = await box.bash(f"cd ../{outside}" if outside == ".." else f"cd {outside}")
    assert result.structured["stderr"] == f"Shell cwd was reset to {box.workspace}"
    assert f"Shell cwd was reset to {box.workspace}" in result.content
    assert await box.text("pwd") == str(box.workspace)


async def test_a_folder_whose_name_begins_like_the_projects_is_outside(box: Any) -> None:
    twin = box.workspace.with_name(box.workspace.name + "-2")
    twin.mkdir()
    assert "was reset" in await box.text(f"cd {twin}")


async def test_a_cd_into_an_added_directory_persists(make_box: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    added = tmp_path_factory.mktemp("added")
    box = await make_box(add_dirs=[added])
    await box.bash(f"cd {added}")
    assert await box.text("pwd") == str(added)


async def test_a_directory_added_by_settings_counts(make_box: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    added = tmp_path_factory.mktemp("added")
    box = await make_box(settings={"permissions": {"additionalDirectories": [str(added)]}})
    await box.bash(f"cd {added}")
    assert box.session.state.cwd == str(added)


async def test_a_link_out_of_the_project_is_outside(box: Any) -> None:
    (box.workspace / "link").symlink_to("/usr")
    assert "was reset" in await box.text("cd link")


async def test_always_reset_where_the_variable_says_so(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR", "1")
    assert "was reset" in await box.text("cd sub")
    assert await box.text("pwd") == str(box.workspace)


async def test_a_subagent_never_keeps_it(box: Any) -> None:
    box.session.agent_id = "agent-1"
    assert f"was reset to {box.workspace}" in await box.text("cd sub")
    assert await box.text("pwd") == str(box.workspace)


async def test_a_folder_that_was_deleted_in_between_gives_way_to_the_project(box: Any) -> None:
    await box.bash("cd sub/deep")
    shutil.rmtree(box.workspace / "sub")
    shown = await box.text("pwd")
    assert shown.startswith(f"{box.workspace}\n") and "no longer exists" in shown
    assert box.session.state.cwd == str(box.workspace)


async def test_a_command_that_deletes_where_it_stands_leaves_the_project_folder(box: Any) -> None:
    await box.bash("cd sub/deep")
    assert "was reset" in await box.text("rm -r ../deep")
    assert await box.text("pwd") == str(box.workspace)


async def test_a_project_that_is_gone_is_an_error_and_no_crash(box: Any) -> None:
    shutil.rmtree(box.workspace)
    with pytest.raises(Exception, match="could not be started"):
        await box.bash("pwd")


async def test_names_that_a_shell_would_take_apart(box: Any) -> None:
    odd = box.workspace / "a b'c\"d $x `y` 日本"
    odd.mkdir()
    import shlex

    await box.bash(f"cd {shlex.quote(str(odd))}")
    assert box.session.state.cwd == str(odd)


async def test_a_change_is_an_event_once(tmp_path: Path) -> None:
    heard: list[CwdChanged] = []
    kit = Kit(tmp_path, [*(call("Bash", command=command) for command in ("cd sub", "true", "cd /")), text("done")],
              hooks={"tools-shell": plugin, "ears": module(cwd_changed=lambda event: heard.append(event))})
    run = await kit.run("go")
    await run.session.close()
    root, sub = str(tmp_path), str(tmp_path / "sub")
    assert [(e.old_cwd, e.new_cwd, e.cwd) for e in heard] == [(root, sub, sub), (sub, root, root)]
