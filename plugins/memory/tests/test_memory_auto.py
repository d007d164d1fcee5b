"""Auto memory: the folder, what is loaded of its index, what happens behind a write (context contract, section 4)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from kernel_memory import auto, state
from kernel_memory.auto import AutoMemory, project_name, stamped

from kernel import parse_frontmatter
from kernel.testing import call, text

from .memory_place import END, facts, kit, seen, system, write

PLACED = ("memory", "tools-files", "permissions")


def memory_of(root: Path, **options: Any) -> AutoMemory | None:
    return auto.of_session(kit(root, **options).open())


@pytest.mark.parametrize(("setting", "variable", "extra", "on"), [
    (None, None, {}, True), (False, None, {}, False), (True, "1", {}, False), (False, "0", {}, True), (None, "1", {}, False),
    (None, None, {"bare": True}, False), (True, None, {}, True)])
def test_the_switches(tmp_path: Path, monkeypatch: Any, setting: Any, variable: Any, extra: Any, on: bool) -> None:
    monkeypatch.delenv("CLAUDE_CODE_DISABLE_AUTO_MEMORY", raising=False)
    if variable is not None:
        monkeypatch.setenv("CLAUDE_CODE_DISABLE_AUTO_MEMORY", variable)
    settings = None if setting is None else {"autoMemoryEnabled": setting}
    assert (memory_of(tmp_path, settings=settings, extra=extra) is not None) is on


def test_all_worktrees_of_a_repository_share_a_folder(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com"]
    for args in (["init", "-q"], ["commit", "-qm", "x", "--allow-empty"], ["worktree", "add", "-q", "../other"]):
        subprocess.run([*git, *args], cwd=repo, check=True)
    (repo / "sub").mkdir()
    places = {memory_of(p).folder.rpartition("/projects/")[2] for p in (repo, repo / "sub", tmp_path / "other")}  # type: ignore[union-attr]
    assert places == {f"{project_name(str(repo))}/memory"}


def test_the_name_of_the_folder_is_the_session_stores(tmp_path: Path) -> None:
    """Both keep a project's data in one place."""
    from kernel_sessions.paths import project_name as theirs  # a test may look at two plugins

    for name in ("plain", "with space.and/more", "ünï", "x" * 150 + "/" + "y" * 100):
        assert project_name(str(tmp_path / name)) == theirs(str(tmp_path / name))


@pytest.mark.parametrize(("given_folder", "used"), [
    ("{tmp}/mem", True), ("~/mem", True), ("mem", False), ("/", False), ("~", False), ("{tmp}", False), (7, False)])
def test_a_folder_of_ones_own(tmp_path: Path, monkeypatch: Any, given_folder: Any, used: bool) -> None:
    """Not one that holds more than memories: what lies in it needs no permission."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    value = given_folder.format(tmp=tmp_path) if isinstance(given_folder, str) else given_folder
    memory = memory_of(tmp_path / "work", settings={"autoMemoryDirectory": value})
    assert memory is not None and memory.folder.endswith("/mem") is used


def test_an_untrusted_project_chooses_no_folder(tmp_path: Path) -> None:
    made = kit(tmp_path, settings={"autoMemoryDirectory": "/elsewhere/mem"})
    made.harness.settings.trusted = False
    memory = auto.of_session(made.open())
    assert memory is not None and memory.folder != "/elsewhere/mem"


# -- the index -----------------------------------------------------------------------------------------------------------------
def index(tmp_path: Path, content: str) -> AutoMemory:
    write(tmp_path, "m/MEMORY.md", content)
    return AutoMemory(str(tmp_path / "m"))


@pytest.mark.parametrize(("content", "last", "cut"), [
    ("\n".join(f"line {n}" for n in range(1, 201)), "line 200", False),
    ("\n".join(f"line {n}" for n in range(1, 202)), "line 200", True),
    ("x" * auto.BYTES, "x" * 40, False), ("x" * (auto.BYTES + 1), "x" * 40, True), ("é" * auto.BYTES, "é" * 40, True)])
def test_two_hundred_lines_or_25_kilobytes(tmp_path: Path, content: str, last: str, cut: bool) -> None:
    told = index(tmp_path, content).beginning()
    body, _, note = told.partition("\n\n(MEMORY.md is longer")
    assert body.endswith(last) and bool(note) is cut and len(body.encode()) < auto.BYTES + 300


def test_it_stands_behind_the_instructions_and_the_manual_in_the_system_prompt(tmp_path: Path) -> None:
    folder = tmp_path / "mem"
    (tmp_path / "work").mkdir()
    write(tmp_path, "work/CLAUDE.md", "Project word.\n")
    write(folder, "MEMORY.md", "- likes tea: tea.md\n")
    write(folder, "tea.md", "Not loaded.\n")
    run = kit(tmp_path / "work", settings={"autoMemoryDirectory": str(folder)}).play("go")
    assert seen(run).index("Project word.") < seen(run).index("- likes tea") and "Not loaded." not in seen(run)
    assert str(folder) in system(run, 1) and str(folder) not in system(run, 0)


def test_agents_have_not_the_conversations_memory(tmp_path: Path) -> None:
    write(tmp_path, "mem/MEMORY.md", "- likes tea\n")
    (tmp_path / "work").mkdir()
    turn = call("Agent", description="d", prompt="Look.", subagent_type="general-purpose", run_in_background=False)
    run = kit(tmp_path / "work", turn, text("r"), END, installed=("memory", "subagents", "tools-files"),
              settings={"autoMemoryDirectory": str(tmp_path / "mem")}).play("go")
    assert "likes tea" in seen(run, 0) and "likes tea" not in seen(run, 1) and "# Memory" not in str(run.requests[1]["system"])


# -- writing --------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("old", "new"), [
    ("---\nname: a # b\n---\nText", "---\nname: a # b\nmodified: NOW\n---\nText"),
    ("---\nmodified: x # y\ntag: '#1'\n---\nT\nmodified: z\n", "---\nmodified: NOW\ntag: '#1'\n---\nT\nmodified: z\n"),
    ("---\r\nname: a\r\n---\r\nT\r\n", "---\r\nname: a\r\nmodified: NOW\r\n---\r\nT\r\n"),
    ("---\n---\nT", "---\nmodified: NOW\n---\nT"),
    ("\ufeff---\na: 1\n---\n", "\ufeff---\na: 1\nmodified: NOW\n---\n"), ("no head\n", "no head\n"),
    ("---\nopen\n", "---\nopen\n"),
    ("---\nlast_modified: 1\n---\n", "---\nlast_modified: 1\nmodified: NOW\n---\n")])
def test_the_stamp_changes_one_line_and_nothing_else(old: str, new: str) -> None:
    assert stamped(old, "NOW") == new and stamped(new, "NOW") == new


VALUES = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=20)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), VALUES))
def test_values_survive_the_stamp_whatever_they_hold(fields: dict[str, str]) -> None:
    import json

    fields.pop("modified", None)
    head = "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in fields.items())
    found = parse_frontmatter(stamped(f"---\n{head}---\nText\n", "NOW"))
    assert found.fields == {**fields, "modified": "NOW"} and found.body == "Text\n"


def remembering(tmp_path: Path, *turns: Any, **options: Any) -> Any:
    (tmp_path / "work").mkdir(exist_ok=True)
    return kit(tmp_path / "work", *turns, settings={"autoMemoryDirectory": str(tmp_path / "mem")}, **options)


def test_a_memory_is_written_without_a_question_and_stamped_and_can_be_edited_on(tmp_path: Path) -> None:
    path = tmp_path / "mem/tea.md"
    turns = [call("Write", "w", file_path=str(path), content="---\nname: tea # green\n---\nLikes tea.\n"),
             call("Edit", "e", file_path=str(path), old_string="Likes", new_string="Loves"), END]
    run = remembering(tmp_path, *turns, installed=PLACED).play("go")
    assert run.result.permission_denials == [] and not run.result_of("e").get("is_error")
    found = parse_frontmatter(path.read_text())
    assert found.fields["name"] == "tea" and "name: tea # green" in path.read_text() and found.body == "Loves tea.\n"
    assert found.fields["modified"].startswith("2") and os.listdir(tmp_path / "mem") == ["tea.md"]
    assert "changed on disk" not in str(run.requests)


def test_what_leads_out_of_the_folder_is_asked_as_ever(tmp_path: Path) -> None:
    (tmp_path / "mem").mkdir()
    (tmp_path / "mem/out").symlink_to(tmp_path)
    turns = [call("Write", file_path=str(tmp_path / "mem/../x"), content="x"),
             call("Write", file_path=str(tmp_path / "mem/out/y"), content="x"),
             call("Bash", command=f"touch {tmp_path}/mem/z"), END]
    run = remembering(tmp_path, *turns, installed=(*PLACED, "tools-shell")).play("go")
    assert len(run.result.permission_denials) == 3 and sorted(os.listdir(tmp_path)) == ["mem", "work"]


def test_a_deny_rule_wins(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    settings = {"autoMemoryDirectory": str(tmp_path / "mem"), "permissions": {"deny": [f"Edit(/{tmp_path}/mem/**)"]}}
    turn = call("Write", file_path=str(tmp_path / "mem/a.md"), content="x")
    run = kit(tmp_path / "work", turn, END, installed=PLACED, settings=settings).play("go")
    assert len(run.result.permission_denials) == 1 and not (tmp_path / "mem").exists()


@pytest.mark.parametrize(("lines", "error", "told"), [
    (179, False, False), (180, False, True), (200, False, True), (201, True, False)])
def test_an_index_near_its_limit_and_over_it(tmp_path: Path, lines: int, error: bool, told: bool) -> None:
    path = tmp_path / "mem/MEMORY.md"
    content = "".join(f"- line {n}\n" for n in range(lines))
    run = remembering(tmp_path, call("Write", "w", file_path=str(path), content=content), END).play("go")
    assert path.read_text() == content
    assert bool(run.result_of("w").get("is_error")) is error and ("nearly full" in seen(run)) is told
    if error:
        assert "201 of 200 lines" in str(run.result_of("w")["content"])


def test_a_file_elsewhere_is_neither_stamped_nor_counted(tmp_path: Path) -> None:
    path = tmp_path / "work/MEMORY.md"
    run = remembering(tmp_path, call("Write", "w", file_path=str(path), content="---\na: 1\n---\n" + "x\n" * 300), END).play("go")
    assert "modified" not in path.read_text() and not run.result_of("w").get("is_error")


def test_forks_inherit_it(tmp_path: Path) -> None:
    made = remembering(tmp_path)
    parent = made.open()
    memory = state.Memory(parent)
    parent.plugin_state[state.KEY] = memory
    assert memory.auto is not None and not memory.fork
    assert state._spec(facts(spec=facts(prompt=None, instructions=True))) == (True, False)  # type: ignore[arg-type]
