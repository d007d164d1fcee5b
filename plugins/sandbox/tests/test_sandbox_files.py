"""Files, with real commands in a real sandbox."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kernel.testing import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_sandbox]


async def test_a_write_outside_fails_and_leaves_no_file(box: Any, work: Path) -> None:
    made = await box()
    text = await made.text(f"echo x > {work.parent}/outside; echo y > /etc/kernel-sandbox-test; echo z > inside")
    assert not (work.parent / "outside").exists() and not os.path.exists("/etc/kernel-sandbox-test")
    assert (work / "inside").read_text() == "z\n"
    assert "Read-only file system" in text


async def test_the_result_names_the_sandbox_and_the_setting(box: Any, work: Path) -> None:
    made = await box()
    failed = await made.text("touch /etc/x")
    assert failed.startswith("Exit code 1") and "[sandbox]" in failed and "sandbox.filesystem.allowWrite" in failed
    fine = await made.call("Bash", command="touch /etc/x; true")
    assert "sandbox.filesystem.allowWrite" in fine.structured["stderr"] and "[sandbox]" in fine.content
    assert "[sandbox]" not in await made.text("echo nothing happened")


async def test_added_directories_and_allowed_places_can_be_written(box: Any, work: Path, tmp_path: Path) -> None:
    places = {name: tmp_path / name for name in ("added", "by-settings", "allowed", "glob-1", "glob-2")}
    for place in places.values():
        place.mkdir()
    made = await box({"filesystem": {"allowWrite": [str(places["allowed"]), f"{tmp_path}/glob-*", f"{tmp_path}/missing"]}},
                     add_dirs=[places["added"]], more={"permissions": {"additionalDirectories": [str(places["by-settings"])]}})
    await made.text("; ".join(f"echo x > {place}/file" for place in places.values()))
    assert all((place / "file").exists() for place in places.values())
    assert not (tmp_path / "missing").exists()


async def system_is_closed(made: Any) -> None:
    """The kernel's own files cannot be written, which would be a way out for root."""
    text = await made.text(
        "for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /sys/kernel/uevent_helper /sys/power/state "
        "/sys/fs/cgroup/cgroup.procs /dev/mem /dev/sda /dev/vda; do [ -e $f ] && (: >> $f) 2>/dev/null && echo open $f; done; "
        "ls -d /proc/[0-9]* | wc -l")
    assert "open" not in text.replace("[sandbox]", "") and int(text.split()[0]) < 10


async def test_the_system_stays_closed_whatever_is_allowed(box: Any, work: Path) -> None:
    for allowed in ([], ["/proc", "/sys", "/dev", "/proc/sys"]):
        made = await box({"filesystem": {"allowWrite": allowed}})
        await system_is_closed(made)
    assert await made.text("echo x > /dev/null && echo works") == "works"


async def test_a_workspace_behind_a_link_and_with_an_odd_name(tmp_path: Path) -> None:
    from kernel import ToolContext
    from kernel.testing import Kit

    (tmp_path / "real 'one'\nof $two" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real 'one'\nof $two")
    session = Kit(tmp_path / "link", installed=["tools-shell", "sandbox"], settings={"sandbox": {"enabled": True}}).open()
    await session.start()
    for command in ("echo x > file; cd sub", "echo y > file"):
        bash = session.toolbox.by_name["Bash"]
        result = await session.run_tool(bash, {"command": command}, ToolContext(session, "call_1", "Bash"))
        session.state = result.context_modifier(session.state) if result.context_modifier else session.state
    await session.close()
    assert (tmp_path / "link" / "file").exists() and (tmp_path / "link" / "sub" / "file").exists()


async def test_a_directory_added_in_the_session_can_be_written(box: Any, tmp_path: Path) -> None:
    from kernel import DirectoryAdded

    (tmp_path / "late").mkdir()
    made = await box()
    await made.text(f"echo x > {tmp_path}/late/file")
    assert not (tmp_path / "late" / "file").exists()
    await made.session.fire(made.session.make(DirectoryAdded, directory=str(tmp_path / "late"), source="slash_command"))
    await made.text(f"echo x > {tmp_path}/late/file; echo y > {tmp_path}/late/.claude/settings.json")
    assert (tmp_path / "late" / "file").exists() and not (tmp_path / "late" / ".claude" / "settings.json").exists()


async def test_the_temporary_folder_is_its_own_and_goes_with_the_session(box: Any) -> None:
    made = await box()
    text = await made.text("echo x > $TMPDIR/file; mktemp > /dev/null; cat <<< here > $TMPDIR/doc; echo $TMPDIR")
    folder = Path(text.strip())
    assert (folder / "file").exists() and (folder / "doc").read_text() == "here\n"
    await made.session.close()
    assert not folder.exists() and not folder.parent.exists()


async def test_denied_writes_win_over_allowed_ones(box: Any, work: Path, tmp_path: Path) -> None:
    (tmp_path / "open" / "closed").mkdir(parents=True)
    (work / "vendor" / "tmp").mkdir(parents=True)
    (work / "locked.txt").write_text("old")
    made = await box({"filesystem": {"allowWrite": [str(tmp_path / "open"), "./vendor/tmp"], "denyWrite": [
        f"/{tmp_path}/open/closed", "vendor", "locked.txt"]}})
    await made.text(f"echo x > {tmp_path}/open/a; echo x > {tmp_path}/open/closed/a; echo x > vendor/tmp/a; echo x > locked.txt;"
                    "mv vendor v2; rm -f locked.txt")
    assert (tmp_path / "open" / "a").exists() and not (tmp_path / "open" / "closed" / "a").exists()
    assert not (work / "vendor" / "tmp" / "a").exists() and (work / "vendor").exists()
    assert (work / "locked.txt").read_text() == "old"


async def test_a_denied_read_hides_files_and_folders(box: Any, work: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secrets"
    (secret / "open").mkdir(parents=True)
    (secret / "key").write_text("TOP")
    (secret / "open" / "note").write_text("SHOWN")
    (work / "one.key").write_text("TOP")
    made = await box({"filesystem": {"denyRead": [f"/{secret}", "./one.key"], "allowRead": [f"{secret}/open"]}})
    text = await made.text(f"cat {secret}/key one.key; ls {secret}; cat {secret}/open/note; grep -r TOP {tmp_path} 2>/dev/null; "
                           f"echo x > {secret}/new; cp one.key copy; python3 -c \"print(open('one.key').read())\"")
    assert "TOP" not in text and "SHOWN" in text and "sandbox.filesystem.denyRead" in text
    assert (secret / "key").read_text() == "TOP" and not (secret / "new").exists()
    assert (work / "one.key").read_text() == "TOP" and not (work / "copy").exists()


async def test_what_is_hidden_cannot_be_uncovered(box: Any, work: Path) -> None:
    (work / "deep" / "er").mkdir(parents=True)
    (work / "deep" / "er" / "secret").write_text("TOP")
    made = await box({"filesystem": {"denyRead": ["deep/er/secret"]}})
    text = await made.text("umount deep/er/secret; mount -o remount,rw /; chmod 777 deep/er/secret; rm -f deep/er/secret; "
                           "mv deep elsewhere; cat elsewhere/er/secret deep/er/secret; unshare -Urm umount deep/er/secret; "
                           "ln deep/er/secret hard; cat hard; cat /proc/1/root/$PWD/deep/er/secret; "
                           "nsenter -t 1 -m cat deep/er/secret")
    assert "TOP" not in text


async def test_deny_rules_feed_the_boundaries(box: Any, work: Path) -> None:
    (work / "sub").mkdir()
    (work / "conf").mkdir()
    for name in (".env", "sub/.env", "conf/a.yaml", "sub/free"):
        (work / name).write_text("TOP")
    made = await box(more={"permissions": {"deny": ["Read(./.env)", "Edit(conf/**)", "Read(offset:3)", "Edit"]}})
    text = await made.text("head .env sub/.env; cat sub/free; echo x >> conf/a.yaml; echo x > conf/new; echo y > sub/free")
    assert text.count("TOP") == 1
    assert (work / "conf" / "a.yaml").read_text() == "TOP" and not (work / "conf" / "new").exists()
    assert (work / "sub" / "free").read_text() == "y\n"
    (work / "sub" / "later").mkdir()
    (work / "sub" / "later" / ".env").write_text("TOP")  # made by somebody else while the session runs
    assert "TOP" not in await made.text("cat sub/later/.env")


async def test_rules_of_the_command_line_count_too(box: Any, work: Path) -> None:
    (work / "a.pem").write_text("TOP")
    (work / "b (copy).txt").write_text("TOP")
    made = await box(disallowed_tools=["Read(*.pem),Read(b \\(copy\\).txt)"])
    assert "TOP" not in await made.text("cat a.pem 'b (copy).txt'")


async def test_a_link_to_a_denied_file_is_no_way_around(box: Any, work: Path, tmp_path: Path) -> None:
    (tmp_path / "shared").write_text("TOP")
    (work / ".env").symlink_to(tmp_path / "shared")
    made = await box(more={"permissions": {"deny": ["Read(.env)"]}})
    assert "TOP" not in await made.text(f"cat .env {tmp_path}/shared")


async def test_a_link_named_like_a_denied_file_does_not_stop_everything(box: Any, work: Path) -> None:
    made = await box(more={"permissions": {"deny": ["Read(*.env)"]}})
    await made.text("ln -s / all.env; ln -s /usr usr.env; ln -s . here.env")
    assert await made.text("echo works") == "works"


async def test_the_working_directory_itself_cannot_be_denied(work: Path) -> None:
    from kernel import UsageError
    from kernel.testing import Kit

    for deny in ({"permissions": {"deny": ["Read(**)"]}}, {"sandbox": {"filesystem": {"denyRead": [f"/{work.parent}"]}}}):
        asked: dict[str, Any] = {**deny, "sandbox": {"enabled": True, **deny.get("sandbox", {})}}
        with pytest.raises(UsageError, match="working directory itself"):
            Kit(work, installed=["sandbox"], settings=asked).open()
    for everything in ("/", "//**"):
        asked = {"sandbox": {"enabled": True, "filesystem": {"denyRead": [everything], "allowRead": ["."]}}}
        with pytest.raises(UsageError, match="whole file system itself"):
            Kit(work, installed=["sandbox"], settings=asked).open()
    shown = {"enabled": True, "filesystem": {"denyRead": [f"/{work.parent}"], "allowRead": ["."]}}
    session = Kit(work, installed=["sandbox"], settings={"sandbox": shown}).open()
    assert session.sandbox is not None
    session.sandbox.close()


async def test_a_hidden_home_with_the_workspace_in_it(box: Any, work: Path, own_home: Path) -> None:
    """The documented pair: nothing of the home folder but the project."""
    (work.parent / "private").write_text("TOP")
    made = await box({"filesystem": {"denyRead": [f"/{work.parent}"], "allowRead": ["."]}})
    text = await made.text("cat ../private; ls ..; echo x > file; cat file")
    assert "TOP" not in text and "private" not in text.replace("../private", "") and (work / "file").exists()


async def test_a_hidden_temporary_folder_leaves_the_harness_what_it_needs(box: Any, work: Path) -> None:
    import tempfile

    (work / "sub").mkdir()
    for hosts in ([], ["example.com"]):
        made = await box({"filesystem": {"denyRead": [f"/{tempfile.gettempdir()}"], "allowRead": ["."]},
                          "network": {"allowedDomains": hosts}})
        text = await made.text(f": {'x' * 200_000}; echo x > $TMPDIR/file && cat $TMPDIR/file; cd sub; "
                               f"ls {tempfile.gettempdir()}")
        assert text.startswith("Exit code 2\nx\n") and "Permission denied" in text
        assert await made.text("pwd") == str(work / "sub")


async def test_the_code_of_the_harness_cannot_be_written(box: Any, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is loaded while the session runs, outside."""
    import sys

    from kernel.testing import plugin_folder

    monkeypatch.setattr(sys, "prefix", str(work / "venv"))
    (work / "venv" / "lib").mkdir(parents=True)
    plugin_folder(work / "mine", "mine", {"hooks/hooks.json": {}})
    made = await box()
    from kernel import Plugin

    made.session.plugins.plugins.append(Plugin(name="mine", root=work / "mine", source="inline"))
    await made.text("echo evil > venv/lib/module.py; echo evil > mine/hooks/hooks.json; mv venv v2; echo fine > file")
    assert not (work / "venv" / "lib" / "module.py").exists()
    assert "evil" not in (work / "mine" / "hooks" / "hooks.json").read_text()
    assert (work / "file").exists()


async def test_file_isolation_can_be_switched_off_by_the_user_only(box: Any, work: Path) -> None:
    off = {"sandbox": {"enabled": True, "filesystem": {"disabled": True}}}
    made = await box(layers=[("project", off)])
    await made.text(f"echo x > {work.parent}/outside")
    assert not (work.parent / "outside").exists()
    made = await box(layers=[("user", off)])
    await made.text(f"echo x > {work.parent}/outside; echo x > .mcp.json")
    assert (work.parent / "outside").exists() and (work / ".mcp.json").exists()
    await system_is_closed(made)
    assert "ENETUNREACH" in await made.text("python3 -c \"import errno, socket; s = socket.socket(); "
                                            "print(errno.errorcode[s.connect_ex(('192.0.2.1', 9))])\"")


# -- protected files -----------------------------------------------------------------------------------------------------
@pytest.fixture
def repository(work: Path) -> Path:
    git(work, "init", "-q", ".")
    git(work, "config", "user.name", "A")
    git(work, "config", "user.email", "a@example.com")
    git(work, "commit", "-q", "--allow-empty", "-m", "first")
    return work


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


async def test_protected_files_stay_as_they_are(box: Any, repository: Path) -> None:
    work = repository
    texts = {".claude/settings.json": "{}", ".bashrc": "x", ".mcp.json": "{}", ".vscode/tasks.json": "{}", "pkg/.npmrc": "x",
             "pkg/.husky/pre-commit": "x", ".claude/commands/a.md": "x"}
    for name, text in texts.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    config = (work / ".git" / "config").read_text()
    made = await box()
    for name in texts:
        await made.text(f"echo evil > {name}; echo evil >> {name}; sed -i s/x/evil/ {name}; rm -f {name}; mv {name} away")
    await made.text("echo evil > .claude/settings.local.json; mv .claude c2; rm -rf .claude; mv pkg p2; mkdir -p pkg; "
                    "mv .vscode v2")
    await made.text("echo evil > .git/config; echo evil > .git/hooks/pre-commit; git config core.hooksPath evil; mv .git g2; "
                    "mv .git/hooks .git/h2; rm -rf .git/hooks; rm -f .git/config; cp -r .git g3 && mv g3 .git")
    assert {name: (work / name).read_text() for name in texts} == texts
    assert (work / ".git" / "config").read_text() == config and not (work / ".git" / "hooks" / "pre-commit").exists()
    assert not (work / ".claude" / "settings.local.json").exists() and not (work / "g2").exists()


async def test_a_repository_without_hooks_gets_none(box: Any, repository: Path) -> None:
    shutil.rmtree(repository / ".git" / "hooks")
    made = await box()
    await made.text("mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; echo ../evil > .git/commondir")
    await made.session.close()
    assert not (repository / ".git" / "hooks").exists() and not (repository / ".git" / "commondir").exists()


async def test_git_stays_usable(box: Any, repository: Path) -> None:
    made = await box()
    text = await made.text("echo a > a; git add -A; git commit -qm second; git checkout -q -b branch; echo b > b; git add b; "
                           "git commit -qm third; git stash list; git log --oneline; git gc -q; git status --short")
    assert "second" in text and "third" in text and "error" not in text.lower() and "fatal" not in text.lower()
    log = git(repository, "log", "--oneline", "--name-only")
    assert [line for line in log.splitlines() if " " not in line] == ["b", "a"], "nothing of the sandbox was committed"


async def test_a_repository_above_the_working_directory_takes_commits(box: Any, repository: Path) -> None:
    from kernel.testing import Kit

    (repository / "part").mkdir()
    kit = Kit(repository / "part", installed=["tools-shell", "sandbox"], settings={"sandbox": {"enabled": True}})
    session = kit.open()
    await session.start()
    from kernel import ToolContext

    result = await session.run_tool(session.toolbox.by_name["Bash"], {"command": (
        "echo a > a; git add a; git commit -qm inner; echo evil > ../.git/hooks/post-commit; echo x > ../outside; "
        "git log --oneline")}, ToolContext(session, "call_1", "Bash"))
    await session.close()
    assert "inner" in str(result.content)
    assert not (repository / ".git" / "hooks" / "post-commit").exists() and not (repository / "outside").exists()


async def test_a_linked_worktree_takes_commits_and_a_false_one_opens_nothing(box: Any, repository: Path, tmp_path: Path) -> None:
    from kernel import ToolContext
    from kernel.testing import Kit

    tree, false, victim = tmp_path / "tree", tmp_path / "false", tmp_path / "victim"
    git(repository, "worktree", "add", "-q", str(tree))
    victim.mkdir()
    (victim / "HEAD").write_text("ref: refs/heads/main\n")
    false.mkdir()
    (false / ".git").write_text(f"gitdir: {victim}\n")

    async def run(folder: Path, command: str) -> str:
        session = Kit(folder, installed=["tools-shell", "sandbox"], settings={"sandbox": {"enabled": True}}).open()
        await session.start()
        bash = session.toolbox.by_name["Bash"]
        result = await session.run_tool(bash, {"command": command}, ToolContext(session, "call_1", "Bash"))
        await session.close()
        return str(result.content)

    assert "inner" in await run(tree, "echo a > a; git add a; git commit -qm inner; git log --oneline; echo evil > .git; "
                                      f"echo evil > {repository}/.git/hooks/post-commit")
    assert not (repository / ".git" / "hooks" / "post-commit").exists() and (tree / ".git").read_text().startswith("gitdir")
    await run(false, f"echo evil > {victim}/file")
    assert not (victim / "file").exists()
    (false / ".git").write_text(f"gitdir: {repository}/.git/worktrees/tree\n")  # a real one, but another's
    await run(false, f"echo evil > {repository}/.git/description")
    assert "evil" not in (repository / ".git" / "description").read_text()


async def test_nothing_is_left_in_the_workspace(box: Any, work: Path) -> None:
    made = await box()
    await made.text("true")
    await made.session.close()
    assert list(work.iterdir()) == []
    made = await box()
    await made.text("true")
    (work / ".claude" / "settings.local.json").write_text("{}")  # the harness saves an answer
    await made.session.close()
    assert (work / ".claude" / "settings.local.json").exists()


async def test_protected_files_that_a_command_makes_are_set_aside(box: Any, work: Path) -> None:
    made = await box()
    text = await made.text("echo '{}' > .mcp.json; mkdir -p .vscode; echo x > .vscode/tasks.json; mkdir .claude; echo a > a")
    assert not (work / ".mcp.json").exists() and (work / ".mcp.json.set-aside").read_text() == "{}\n"
    assert not (work / ".vscode").exists() and (work / "a").exists()
    assert ".mcp.json is protected" in text and any(".mcp.json" in said for said in made.harness.announced)
    await made.text("echo again > .mcp.json")
    assert (work / ".mcp.json.set-aside2").read_text() == "again\n"


async def test_what_others_make_is_not_set_aside_and_protected_from_then_on(box: Any, work: Path) -> None:
    made = await box(installed=("tools-shell", "tools-files", "permissions", "sandbox"))
    await made.text("true")
    (work / ".npmrc").write_text("a person made it")
    await made.call("Write", file_path=str(work / ".mcp.json"), content="{}")
    await made.text("echo evil > .npmrc; echo evil > .mcp.json; echo more")
    assert (work / ".npmrc").read_text() == "a person made it" and (work / ".mcp.json").read_text() == "{}"


async def test_while_a_command_runs_in_the_background_only_file_tools_make_protected_files(box: Any, work: Path) -> None:
    made = await box(installed=("tools-shell", "tools-files", "permissions", "sandbox"))
    made.session.interrupted = True  # no grace at the end
    await made.call("Bash", command="touch started; while [ ! -e go ]; do sleep 0.02; done; echo evil > .npmrc; sleep 600",
                    run_in_background=True)
    await until((work / "started").exists)
    await made.call("Write", file_path=str(work / ".mcp.json"), content="{}")
    await made.text("touch go")
    await until(lambda: (work / ".npmrc").exists() or (work / ".npmrc.set-aside").exists())
    await made.text("echo more")
    assert (work / ".mcp.json").read_text() == "{}" and not (work / ".npmrc").exists()


async def test_the_sandbox_own_files_are_out_of_reach_even_where_all_of_tmp_is_writable(box: Any, work: Path) -> None:
    """A command that could replace the filter would have it off in the next one."""
    import tempfile

    made = await box({"filesystem": {"allowWrite": [tempfile.gettempdir()]}})
    folder = made.session.sandbox.folder
    before = (folder / "filter").read_bytes()
    await made.text(f"echo > {folder}/filter; rm -rf {folder}/*; mv {folder} {folder}2; chmod 644 {folder}/mask")
    assert (folder / "filter").read_bytes() == before and (folder / "mask").stat().st_mode & 0o777 == 0
    env_file = Path(tempfile.mkdtemp()) / "env.sh"
    env_file.write_text("export FROM_HOOK=yes\n")
    made.session.environment["CLAUDE_ENV_FILE"] = str(env_file)
    assert "yes" in await made.text(f"echo evil >> {env_file}; echo $FROM_HOOK")
    assert "evil" not in env_file.read_text()
