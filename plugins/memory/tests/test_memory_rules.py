"""Rules for certain files and nested files: when they come, where they stand, once per context (context contract, 2.5 and 3)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, strategies as st
from kernel_memory import state
from kernel_memory.globs import MAX_EXPANDED, Patterns
from kernel_memory.loader import _globs

from kernel import text_of
from kernel.testing import call, text, until

from .memory_place import END, kit, listener, read, seen, told, write


@pytest.mark.parametrize(("pattern", "yes", "no"), [
    ("*.md", ["a.md"], ["x/a.md", "a.mdx"]), ("**/*.md", ["a.md", "x/y/a.md"], ["a.txt"]),
    ("src/**", ["src/a", "src/x/b"], ["a/src/b"]),
    ("src/**/test_*.py", ["src/test_a.py", "src/x/y/test_.py"], ["src/a_test.py"]), ("a?c", ["abc"], ["ac", "a/c"]),
    ("*.{ts,tsx}", ["a.ts", "a.tsx"], ["a.js", "a.t"]), ("{a,b/{c,d}}/x", ["a/x", "b/c/x", "b/d/x"], ["b/x", "{a/x"]),
    ("[a-c]x", ["ax", "cx"], ["dx", "-x"]), ("[!a]x", ["bx"], ["ax"]), ("[]]x", ["]x"], ["x"]),
    (r"\[id\].ts", ["[id].ts"], ["i.ts"]),
    (r"\*.md", ["*.md"], ["a.md"]), ("[ab", [], ["a", "[ab"]), ("./src/*", ["src/a"], []), ("src/", ["src"], []),
    ("**", ["a", "a/b"], []), ("a/**/b", ["a/b", "a/x/b"], ["ab"]), ("{a}", ["{a}"], ["a"]), ("", [], ["a"]),
    ("[z-a]", [], ["z"])])
def test_what_a_pattern_means(pattern: str, yes: list[str], no: list[str]) -> None:
    patterns = Patterns((pattern,))
    assert [p for p in yes + no if patterns.match(p)] == yes


@given(st.text("ab*?/[]{},!\\-.", max_size=25), st.text("ab/.", max_size=20))
def test_no_pattern_breaks_it_and_a_broken_one_leaves_the_others_alone(pattern: str, path: str) -> None:
    Patterns((pattern,)).match(path)
    assert Patterns((pattern, "**")).match("x/y")


def test_patterns_take_time_in_proportion() -> None:
    """What makes a backtracking matcher run for years is answered; the answer itself is the proof."""
    hostile = "**/" * 30 + "*a" * 60 + "b"
    assert not Patterns((hostile,)).match("/".join(["a" * 120] * 60))


def test_the_budget_of_one_rule() -> None:
    at = Patterns(("{" + ",".join(f"a{n}" for n in range(MAX_EXPANDED)) + "}", "plain", "{x,y}"))
    assert at.match("a0") and at.match(f"a{MAX_EXPANDED - 1}") and at.match("plain")
    assert not at.match("x") and at.over == ["{x,y}"]
    bomb = "{a,b}" * 40
    over = Patterns((bomb, "*.py"))
    assert over.over == [bomb] and not over.match("a" * 40) and over.match("z.py")
    long = Patterns(("{" + "x" * 5_000_000 + ",b}",))
    assert long.over and not long.match("b")


@pytest.mark.parametrize(("value", "expected"), [
    ("a, b ,", ("a", "b")), ("*.{ts,tsx}, b", ("*.{ts,tsx}", "b")), (["a", " b ", 3, ""], ("a", "b")), (None, ()), (7, ()),
    ("", ())])
def test_paths_as_a_list_or_a_text_with_commas(value: Any, expected: Any) -> None:
    assert _globs(value) == expected


# -- in a session -----------------------------------------------------------------------------------------------------------
def test_a_rule_comes_behind_the_result_that_read_the_file(tmp_path: Path) -> None:
    write(tmp_path, ".claude/rules/api.md", "---\npaths: 'api/**'\n---\nRule word.\n<!-- not told -->\n")
    path = write(tmp_path, "api/a.py")
    events, hooks = listener()
    run = kit(tmp_path, read(path), END, hooks={"ear": hooks}).play("go")
    assert told(run, 0) == [] and "Rule word." in seen(run, 1) and "not told" not in seen(run, 1) and "paths:" not in seen(run, 1)
    kinds = [b["type"] for b in run.requests[1]["messages"][-1]["content"]]
    assert kinds == ["tool_result", "text"]
    event = events[0]
    assert (event.load_reason, event.globs, event.trigger_file_path, event.memory_type) == (
        "path_glob_match", ["api/**"], str(path), "Project")


def test_only_reading_brings_a_rule_and_writing_brings_nested_files(tmp_path: Path) -> None:
    write(tmp_path, ".claude/rules/sub.md", "---\npaths: 'sub/**'\n---\nRule word.\n")
    write(tmp_path, "sub/CLAUDE.md", "Nested word.\n")
    run = kit(tmp_path, read(tmp_path / "sub/new.py", "Write"), END).play("go")
    assert "Nested word." in seen(run, 1) and "Rule word." not in seen(run, 1)


def test_a_failed_read_and_a_command_bring_nothing(tmp_path: Path) -> None:
    write(tmp_path, "sub/CLAUDE.md", "Nested word.\n")
    run = kit(tmp_path, read(tmp_path / "sub/none.py"), call("Bash", command="cat sub/CLAUDE.md > /dev/null"), END,
              installed=("memory", "tools-files", "tools-shell")).play("go")
    assert told(run) == []


def test_nested_files_from_the_outer_to_the_inner_folder_each_once(tmp_path: Path) -> None:
    for path in ("a/CLAUDE.md", "a/CLAUDE.local.md", "a/b/.claude/CLAUDE.md", "a/b/.claude/rules/r.md"):
        write(tmp_path, path, f"This is {path}.\n@more.md\n")
    write(tmp_path, "a/more.md", "More.\n")
    write(tmp_path, "a/b/.claude/rules/s.md", "---\npaths: '*.py'\n---\nFor Python.\n")
    path = write(tmp_path, "a/b/x.py")
    events, hooks = listener()
    run = kit(tmp_path, read(path), [read(path), read(write(tmp_path, "a/y.py"))], END, hooks={"ear": hooks}).play("go")
    expected = ["a/more.md", "a/CLAUDE.md", "a/CLAUDE.local.md", "a/b/.claude/CLAUDE.md", "a/b/.claude/rules/r.md",
                "a/b/.claude/rules/s.md"]
    assert [str(Path(p).relative_to(tmp_path)) for p in told(run)] == expected
    assert [e.load_reason for e in events] == ["include", *["nested_traversal"] * 4, "path_glob_match"]


def test_sources_that_are_off_stay_off_below(tmp_path: Path) -> None:
    write(tmp_path, "sub/CLAUDE.md", "Nested word.\n")
    write(tmp_path, "sub/CLAUDE.local.md", "Local word.\n")
    write(tmp_path, ".claude/rules/r.md", "---\npaths: '**'\n---\nRule word.\n")
    run = kit(tmp_path, read(write(tmp_path, "sub/a.py")), END, setting_sources=("user", "local")).play("go")
    assert [Path(p).name for p in told(run)] == ["CLAUDE.local.md"]


def test_user_rules_count_from_the_project_root_and_links_match_by_both_names(tmp_path: Path) -> None:
    write(tmp_path, ".config/rules/u.md", "---\npaths: 'real/*.py'\n---\nUser rule.\n")
    write(tmp_path, ".claude/rules/p.md", "---\npaths: 'link/*.py'\n---\nProject rule.\n")
    write(tmp_path, "real/a.py")
    (tmp_path / "link").symlink_to("real")
    run = kit(tmp_path, read(tmp_path / "link/a.py"), END).play("go")
    assert [Path(p).name for p in told(run)] == ["u.md", "p.md"]


def test_a_rule_counts_as_it_is_when_it_loads(tmp_path: Path) -> None:
    rule = write(tmp_path, ".claude/rules/r.md", "---\npaths: '*.py'\n---\nOld.\n")
    path = write(tmp_path, "a.py")

    def change(body: Any) -> Any:
        rule.write_text("---\npaths: '*.py'\n---\nNew.\n")
        return read(path)

    run = kit(tmp_path, change, END).play("go")
    assert "New." in seen(run) and "Old." not in seen(run)


# -- contexts ----------------------------------------------------------------------------------------------------------------
AGENTS = ("memory", "tools-files", "subagents")


def agent(kind: str = "general-purpose") -> Any:
    return call("Agent", description="d", prompt="Look.", subagent_type=kind, run_in_background=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, "CLAUDE.md", "Project word.\n")
    write(tmp_path, ".claude/rules/r.md", "---\npaths: '**/*.py'\n---\nRule word.\n")
    write(tmp_path, "sub/CLAUDE.md", "Nested word.\n")
    write(tmp_path, "sub/a.py")
    return tmp_path


def test_an_agent_has_the_files_of_the_start_and_meets_its_own(project: Path) -> None:
    """What the parent met is not the agent's, and the other way round: each context is told once."""
    path = project / "sub/a.py"
    events, hooks = listener()
    turns = [read(path), agent(), read(path), text("report"), read(path), END]
    run = kit(project, *turns, installed=AGENTS, hooks={"ear": hooks}).play("go")
    first, second = seen(run, 2), seen(run, 3)  # the agent's
    assert "Project word." in first and "Nested word." not in first and "Nested word." in second and "Rule word." in second
    assert seen(run, 5).count("Nested word.") == 1
    assert [e.agent_id is not None for e in events] == [False, False, False, True, True, True]


def test_explore_gets_none_of_it(project: Path) -> None:
    run = kit(project, agent("Explore"), read(project / "sub/a.py"), text("report"), END, installed=AGENTS).play("go")
    assert not any(word in seen(run, n) + str(run.requests[n]["system"]) for n in (1, 2)
                   for word in ("Project word.", "Nested word.", "Rule word."))


def test_after_a_compaction_the_start_is_read_again_and_the_rest_when_it_is_met(project: Path) -> None:
    events, hooks = listener()
    made = kit(project, read(project / "sub/a.py"), END, read(project / "sub/a.py"), END, hooks={"ear": hooks})

    async def go() -> list[Any]:
        session = made.open()
        await session.submit("go")
        (project / "CLAUDE.md").write_text("Project word, changed.\n")
        extension = made.harness.extensions.get("memory")
        blocks = await extension.after_compaction(session)
        await session.submit("again")
        await session.close()
        return blocks

    blocks = anyio.run(go)
    assert "Project word, changed." in text_of(blocks) and "Nested word." not in text_of(blocks)
    assert [e.load_reason for e in events] == [
        "session_start", "nested_traversal", "path_glob_match", "compact", "nested_traversal", "path_glob_match"]
    run_requests = made.model.requests
    assert str(run_requests[-1]).count("Nested word.") == 2


def test_another_conversation_begins_with_what_is_on_disk_then(project: Path) -> None:
    subprocess.run(["git", "init", "-qb", "one"], cwd=project, check=True)
    made = kit(project, read(project / "sub/a.py"), END, read(project / "sub/a.py"), END)

    async def go() -> None:
        session = made.open()
        await session.submit("go")
        (project / "CLAUDE.md").write_text("Another word.\n")
        (project / ".git/HEAD").write_text("ref: refs/heads/two\n")
        await session.clear()
        await session.submit("again")
        await session.close()

    anyio.run(go)
    first, last = made.model.requests[0], made.model.requests[-1]
    assert "Project word." in str(first) and "Project word." not in str(last) and "Another word." in str(last)
    assert str(last).count("Nested word.") == 1 and str(last).count("Rule word.") == 1
    assert "Current branch: one" in str(first["system"]) and "Current branch: two" in str(last["system"])


def test_a_fork_knows_what_its_parent_was_told(project: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("CLAUDE_CODE_FORK_SUBAGENT", "1")
    path = project / "sub/a.py"
    turns = [read(path), agent("fork"), read(path), text("report"), END]
    run = kit(project, *turns, installed=AGENTS).play("go")
    forked = [n for n, request in enumerate(run.requests) if "You are the fork" in str(request)]
    assert forked and seen(run, forked[-1]).count("Nested word.") == 1 and seen(run, forked[-1]).count("Rule word.") == 1
    assert run.requests[forked[0]]["system"] == run.requests[0]["system"]


def test_a_command_hook_hears_of_it(project: Path) -> None:
    """Through the plugin that runs hooks, as JSON; nothing waits for it."""
    command = f"cat >> {project}/heard; sleep 0.2"
    group = {"matcher": "session_start", "hooks": [{"type": "command", "command": command}]}
    kit(project, read(project / "sub/a.py"), END, installed=("memory", "tools-files", "command-hooks"),
        settings={"hooks": {"InstructionsLoaded": [group]}}).play("go")
    path = project / "heard"

    async def wait() -> None:
        await until(lambda: path.exists() and path.read_text().endswith("}\n"))

    anyio.run(wait)
    heard = json.loads(path.read_text())
    assert (heard["file_path"], heard["memory_type"]) == (str(project / "CLAUDE.md"), "Project")


@pytest.mark.parametrize(("content", "comes"), [
    ("---\npaths: 'a.py'\npaths: 'none'\n---\nRule word.\n", False), ("---\npaths: 'a.py'\nRule word.\n", False),
    ("---\n\tpaths: 'a.py'\n---\nRule word.\n", False),
    ("---\npaths: !!python/object/apply:os.system ['touch ran']\n---\nRule word.\n", False),
    ("\ufeff---\r\npaths: 'a.py'\r\n---\r\nRule word.\r\n", True), ("---\npaths: **/*.py\n---\nRule word.\n", True),
    ("---\npaths:\n- '[broken'\n- '*.py'\n---\nRule word.\n", True), ("---\npaths: a.py\nother: {}\n---\nRule word.\n", True)])
def test_rules_as_people_and_strangers_write_them(tmp_path: Path, content: str, comes: bool) -> None:
    """A rule that cannot be read is not told for everything; nothing in it runs."""
    write(tmp_path, ".claude/rules/r.md", content)
    run = kit(tmp_path, read(write(tmp_path, "a.py")), END).play("go")
    assert "Rule word." not in seen(run, 0) and ("Rule word." in seen(run)) is comes and not (tmp_path / "ran").exists()


def test_a_resumed_conversation_is_not_told_again(project: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(project / ".config"))
    path = project / "sub/a.py"
    first = kit(project, read(path), END, installed=("memory", "tools-files", "sessions"), persist=True)
    first.play("go")
    events, hooks = listener()
    again = kit(project, read(path), END, installed=("memory", "tools-files", "sessions"), persist=True, continue_session=True,
                hooks={"ear": hooks})
    run = again.play("more")
    assert seen(run).count("Project word.") == 1 and seen(run).count("Nested word.") == 1 and seen(run).count("Rule word.") == 1
    assert events == []


def test_a_resumed_conversation_is_told_what_is_different_now(project: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(project / ".config"))
    installed = ("memory", "tools-files", "sessions")
    write(project, "CLAUDE.local.md", "Local word.\n")
    kit(project, END, installed=installed, persist=True).play("go")
    write(project, "CLAUDE.md", "Project word, changed.\n")
    write(project, ".claude/CLAUDE.md", "New word.\n")
    events, hooks = listener()
    again = kit(project, END, END, installed=installed, persist=True, continue_session=True, hooks={"ear": hooks})
    run = again.play("more", "again")
    assert [seen(run).count(w) for w in ("Project word.", "Project word, changed.", "New word.", "Local word.")] == [1, 1, 1, 1]
    assert [Path(e.file_path).relative_to(project).as_posix() for e in events] == ["CLAUDE.md", ".claude/CLAUDE.md"]


def test_an_event_listener_that_fails_changes_nothing(project: Path) -> None:
    from kernel import hookimpl
    from kernel.testing import module

    def instructions_loaded(event: Any) -> None:
        raise RuntimeError("no")

    run = kit(project, END, hooks={"bad": module(instructions_loaded=hookimpl(instructions_loaded))}).play("go")
    assert "Project word." in seen(run) and run.text == "done"
    assert state.KEY in run.session.plugin_state


@pytest.mark.parametrize("pattern", ["{" + "," * 60_000, "{a" * 20_000 + ",", "*a" * 15_000 + "b", "**/" * 15_000 + "b",
                                     "[" * 20_000])
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    """An open brace with many commas took half a minute, and was looked at for each rule."""
    assert not Patterns((pattern,)).match("aa/" * 60 + "a" * 200)
