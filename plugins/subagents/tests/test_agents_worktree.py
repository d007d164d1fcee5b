"""A checkout of an agent's own, with real git: made, left, removed or kept, and no way from it into the main one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kernel_subagents.fence import Fence

from kernel import WorktreeCreateResult
from kernel.testing import call, module, text

from .agent_world import SCOUT, Gate, World, agent

pytestmark = pytest.mark.anyio


def git(cwd: Path, *args: str) -> str:
    done = subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", *args], cwd=cwd, check=True,
                          capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repo(world: World) -> World:
    world.write(".claude/agents/scout.md", SCOUT)
    world.write(".gitignore", ".claude/worktrees\n.env\nbuild\n")
    world.write("tracked.txt", "one\n")
    git(world.root, "init", "-q", "-b", "main")
    git(world.root, "add", ".")
    git(world.root, "commit", "-qm", "first")
    return world


def gone() -> int:
    """The id of a process that has ended."""
    return int(subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout)


def trees(world: World) -> list[str]:
    return [line.removeprefix("worktree ") for line in git(world.root, "worktree", "list", "--porcelain").splitlines()
            if line.startswith("worktree ")][1:]


def branches(world: World) -> list[str]:
    return git(world.root, "branch", "--format=%(refname:short)").splitlines()


async def run(world: World, work: list[Any], *, turns: list[Any] | None = None, **kit: Any) -> None:
    kit = {"permission_mode": "bypassPermissions", **kit}
    turns = turns or [agent("Work.", isolation="worktree"), text("done"), text("ok")]
    await world.run(turns, {"Work.": [*work, text("report")]}, **kit)


async def test_without_changes_it_goes_with_its_branch(repo: World) -> None:
    await run(repo, [call("Bash", "b", command="pwd; git status --short")])
    assert f"{repo.root}/.claude/worktrees/agent-" in repo.told("Work.") and "report" in repo.result("toolu_1")
    assert trees(repo) == [] and branches(repo) == ["main"] and "worktree" not in repo.result("toolu_1")


@pytest.mark.parametrize("work", ["echo new > new.txt", "echo two >> tracked.txt",
                                  "git -c user.name=t -c user.email=t@x commit --allow-empty -qm work"])
async def test_with_changes_or_commits_it_stays_and_the_parent_learns_where(work: str, repo: World) -> None:
    seen: list[Any] = []
    hooks = module(post_tool_use=lambda event: seen.append(event.tool_response) if event.tool_name == "Agent" else None)
    await run(repo, [call("Bash", "b", command=work)], hooks={"h": hooks})
    (path,) = trees(repo)
    assert path in repo.result("toolu_1") and seen[0]["worktreePath"] == path
    assert seen[0]["worktreeBranch"] in branches(repo) and not (repo.root / "new.txt").exists()
    assert (repo.root / "tracked.txt").read_text() == "one\n"
    assert "locked" not in git(repo.root, "worktree", "list", "--porcelain")


async def test_it_is_locked_while_the_agent_works(repo: World) -> None:
    gate = Gate()
    turns = [agent("Work.", isolation="worktree", background=True), text("a"), text("b")]
    await run(repo, [call("Gate")], turns=turns, tools=[gate])
    await repo.until(lambda: bool(gate.waiting))
    assert "locked agent of process" in git(repo.root, "worktree", "list", "--porcelain")
    gate.open.set()
    await repo.settle()
    assert trees(repo) == []


async def test_the_definition_asks_for_it_too_and_edits_land_in_it(repo: World) -> None:
    repo.agent("scout", isolation="worktree")
    await run(repo, [lambda body: call("Write", file_path="new.txt", content="x")], turns=[agent("Work."), text("done")])
    (path,) = trees(repo)
    assert (Path(path) / "new.txt").read_text() == "x" and not (repo.root / "new.txt").exists()


async def test_the_branch_begins_at_the_remotes_default_or_at_the_current_commit(repo: World, tmp_path: Path) -> None:
    git(repo.root, "clone", "-q", "--bare", str(repo.root), str(tmp_path / "remote.git"))
    git(repo.root, "remote", "add", "origin", str(tmp_path / "remote.git"))
    git(repo.root, "fetch", "-q", "origin")
    git(repo.root, "remote", "set-head", "origin", "main")
    repo.write("tracked.txt", "local\n")
    git(repo.root, "commit", "-qam", "only here")
    for settings, expected in ((None, "one"), ({"worktree": {"baseRef": "head"}}, "local")):
        await run(repo, [call("Bash", "b", command="cat tracked.txt")], settings=settings)
        assert f'"content": "{expected}' in repo.told("Work.")
        await repo.session.close()


async def test_ignored_files_that_are_named_are_copied_and_no_others(repo: World) -> None:
    repo.write(".env", "KEY=1\n")
    repo.write("build/out.o", "x")
    repo.write(".worktreeinclude", ".env\ntracked.txt\n")
    git(repo.root, "add", ".worktreeinclude")
    git(repo.root, "commit", "-qm", "include")
    await run(repo, [call("Bash", "b", command="ls -A; cat .env")])
    assert "KEY=1" in repo.told("Work.") and "build" not in repo.told("Work.").split("Additional")[-1].split('"tool_result"')[1]


async def test_without_a_repository_and_without_a_hook_it_is_an_error(world: World) -> None:
    world.write(".claude/agents/scout.md", SCOUT)
    await run(world, [])
    assert "in no git repository" in world.result("toolu_1") and "Work." not in world.model.by_route


async def test_a_link_in_the_way_is_refused(repo: World, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (repo.root / ".claude" / "worktrees").symlink_to(tmp_path / "elsewhere")
    await run(repo, [])
    assert "passes through a link" in repo.result("toolu_1") and list((tmp_path / "elsewhere").iterdir()) == []


async def test_old_worktrees_without_work_go_and_locks_of_dead_processes_too(repo: World) -> None:
    places = {}
    for name in ("agent-old", "agent-dirty", "agent-ahead", "agent-new", "agent-alive", "mine"):
        places[name] = repo.root / ".claude" / "worktrees" / name
        git(repo.root, "worktree", "add", "-q", "-b", f"worktree-{name}", str(places[name]))
    (places["agent-dirty"] / "x").write_text("work")
    git(places["agent-ahead"], "commit", "-q", "--allow-empty", "-m", "work")
    git(repo.root, "worktree", "lock", "--reason", f"agent of process {gone()}", str(places["agent-old"]))
    git(repo.root, "worktree", "lock", "--reason", f"agent of process {os.getpid()}", str(places["agent-alive"]))
    for name, path in places.items():
        if name != "agent-new":
            os.utime(path, (1, 1))
    await run(repo, [])
    left = {name for name, path in places.items() if path.exists()}
    assert left == {"agent-dirty", "agent-ahead", "agent-new", "agent-alive", "mine"}
    assert "worktree-agent-old" not in branches(repo)


# -- hooks ---------------------------------------------------------------------------------------------------------------
async def test_a_hook_makes_and_removes_the_worktree_instead_of_git(world: World, tmp_path: Path) -> None:
    world.write(".claude/agents/scout.md", SCOUT)
    place, log = tmp_path / "made", tmp_path / "log"
    settings = {"hooks": {
        "WorktreeCreate": [{"hooks": [{"type": "command", "command": f"mkdir -p {place}; echo some noise; echo {place}"}]}],
        "WorktreeRemove": [{"hooks": [{"type": "command", "command": f"cat > {log}; rm -r {place}"}]}]}}
    await run(world, [call("Bash", "b", command="pwd; touch x")], settings=settings)
    assert f'"content": "{place}' in world.told("Work.") and not place.exists()
    assert f'"worktree_path":"{place}"' in log.read_text().replace(": ", ":")


@pytest.mark.parametrize("command", ["exit 1", "echo /nowhere/at/all", "echo /tmp/../tmp"])
async def test_a_hook_that_fails_or_gives_nonsense_stops_the_agent(command: str, world: World) -> None:
    world.write(".claude/agents/scout.md", SCOUT)
    settings = {"hooks": {"WorktreeCreate": [{"hooks": [{"type": "command", "command": command}]}]}}
    await run(world, [], settings=settings)
    assert "WorktreeCreate" in world.result("toolu_1") and "Work." not in world.model.by_route


async def test_a_relative_path_of_a_hook_and_one_in_python(world: World) -> None:
    world.write(".claude/agents/scout.md", SCOUT)
    (world.root / "tree").mkdir()
    await run(world, [call("Bash", "b", command="pwd")], hooks={"h": module(
        worktree_create=lambda event: WorktreeCreateResult(worktree_path="tree"))})
    assert f'"content": "{world.root}/tree' in world.told("Work.")


@pytest.mark.parametrize("trusted", [False, True])
async def test_filters_of_a_repository_that_nobody_trusted_do_not_run(repo: World, tmp_path: Path, trusted: bool) -> None:
    repo.write(".gitattributes", "*.txt filter=own\n")
    git(repo.root, "add", ".")
    git(repo.root, "commit", "-qm", "second")
    git(repo.root, "config", "filter.own.smudge", f"touch {tmp_path / 'ran'}; cat")
    git(repo.root, "config", "core.fsmonitor", f"touch {tmp_path / 'watched'}; false")
    repo.open([agent("Look.", isolation="worktree"), text("done")], {"Look.": [text("seen")]})
    repo.session.settings.trusted = trusted
    await repo.go("Start.")
    assert (tmp_path / "ran").exists() is trusted and not (tmp_path / "watched").exists()
    assert ("configures filters (filter.own.smudge)" in repo.result("toolu_1")) is not trusted


# -- the fence -------------------------------------------------------------------------------------------------------------
async def test_edits_of_the_main_checkout_are_blocked_in_every_mode(repo: World) -> None:
    target = str(repo.root / "tracked.txt")
    (repo.root / "link").symlink_to(repo.root / ".claude")
    await run(repo, [[call("Write", "w", file_path=target, content="x"),
                      call("Write", "l", file_path=f"{repo.root}/link/new", content="x"),
                      call("Bash", "c", command=f"cd {repo.root} && touch escaped"),
                      call("Bash", "g", command=f"git -C {repo.root} checkout -q -b stolen")]])
    assert (repo.root / "tracked.txt").read_text() == "one\n" and not (repo.root / "escaped").exists()
    assert not (repo.root / ".claude" / "new").exists() and "stolen" not in branches(repo)
    assert repo.told("Work.").count("main checkout") >= 2 and "leaves the worktree" in repo.told("Work.")


async def test_an_agent_of_a_fenced_agent_is_fenced_too(repo: World) -> None:
    await repo.run([agent("Outer.", isolation="worktree"), text("done")], {
        "Outer.": [agent("Inner.", "i"), text("r")],
        "Inner.": [[call("Write", "w", file_path=str(repo.root / "tracked.txt"), content="x"),
                    call("Bash", "b", command=f"cd {repo.root} && touch escaped"), call("Bash", "p", command="pwd")], text("r")]},
        permission_mode="bypassPermissions")
    assert (repo.root / "tracked.txt").read_text() == "one\n" and not (repo.root / "escaped").exists()
    assert f"{repo.root}/.claude/worktrees/agent-" in repo.told("Inner.")


async def test_in_the_next_process_an_agent_goes_on_in_its_worktree_behind_its_fence(repo: World) -> None:
    kept = {"persist": True, "more": ("sessions",), "permission_mode": "bypassPermissions"}
    await run(repo, [call("Bash", "b", command="echo new > new.txt")], **kept)
    (path,) = trees(repo)
    agent_id, session_id = str(repo.said("task_started")[0]["task_id"]), repo.session.id
    await repo.session.close()
    await repo.run([call("SendMessage", "s", to=agent_id, message="More."), text("a"), text("b")], {
        "Work.": [[call("Bash", "p", command="pwd; cat new.txt"), call("Bash", "e", command=f"cd {repo.root}")], text("r")]},
        resume=session_id, **kept)
    await repo.settle()
    assert f'"content": "{path}\\nnew' in repo.told("Work.") and "leaves the worktree" in repo.told("Work.")
    assert trees(repo) == [path] and "locked" not in git(repo.root, "worktree", "list", "--porcelain")


@pytest.fixture
def fence(tmp_path: Path) -> Fence:
    main = tmp_path / "main"
    tree = main / ".claude" / "worktrees" / "a"
    (tree / "sub").mkdir(parents=True)
    return Fence(os.path.realpath(tree), os.path.realpath(main))


BLOCKED = ["cd ..", "cd {main}", "cd {main} && ls", "ls; cd {main}", "(cd {main}; ls)", "cd", "cd ~", "cd -", "cd $HOME",
           "cd $(pwd)/..", "cd `x`", "pushd {main}", "git -C {main} status", "git -C .. log", "git -C ../../.. log",
           "git --git-dir={main}/.git log",
           "git --git-dir {main}/.git log", "git --work-tree {main} checkout .", "GIT_DIR={main}/.git git log",
           "env GIT_WORK_TREE={main} git checkout .", "export GIT_DIR={main}/.git", "cd sub/../../..", "echo {{a,b}}",
           "touch x{{1..3}}",
           "cat <<EOF\n$x\nEOF", "cd sub && cd ../..", "if true; then cd {main}; fi", "cd 'un", "git -c x=y -C {main} log",
           "/usr/bin/git -C {main} log", "cd ~root", "cd {main}/*", "command cd {main}", "true\ncd {main}", "git -C $X log",
           "'cd' {main}", "\\cd {main}", "c''d {main}", '"git" -C {main} log', 'eval "cd {main}"', "bash -c 'cd {main}; ls'",
           "sh -ec 'git -C {main} log'", "echo 'cd {main}' | sh", "X=1 git -C {main} log", "X=1 cd {main}",
           "env -C {main} git log", "env --chdir={main} git log", "env X=1 git -C {main} log", "timeout 5 git -C {main} log",
           "xargs git -C {main} add",
           "git -c core.worktree={main} add ."]
FREE = ["ls", "cd sub", "cd sub && cd ..", "cd {tree}", "git status", "git -C sub log", "git -C {tree} log",
        "git commit -m 'cd ..'", "cat <<'EOF'\n$x\nEOF", "echo ${{x}}", "git log -- sub", "grep -r cd .", "echo git -C x",
        "cd ./sub; ls", "GIT_DIR={tree}/.git git log",
        "awk '{{print $1}}' f", "git checkout -b x", "bash build.sh && git add .", "X=1 git log", "env X=1 git log",
        "timeout 5 git log", "bash -e build.sh; cd sub"]


@pytest.mark.parametrize("command", BLOCKED)
def test_commands_that_leave_or_cannot_be_traced(command: str, fence: Fence) -> None:
    assert fence.command(command.format(main=fence.main, tree=fence.path), fence.path)


@pytest.mark.parametrize("command", FREE)
def test_commands_that_stay(command: str, fence: Fence) -> None:
    assert fence.command(command.format(main=fence.main, tree=fence.path), fence.path) == ""
