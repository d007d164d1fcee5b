"""What the model is told, side by side and in an order that the prompt cache can rely on (context contract, 1 and 10)."""

from __future__ import annotations

import json
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from kernel import Session, hookimpl
from kernel.testing import call, module, text

from .memory_place import END, kit, read, seen, system, write

EVERYTHING = ("memory", "output-styles", "tools-files", "tools-shell", "tools-tasks", "skills", "subagents", "permissions")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    for path in ("CLAUDE.md", "sub/CLAUDE.md", "sub/a.py", ".claude/rules/r.md"):
        write(work, path, f"This is {path}.\n")
    write(work, ".claude/skills/s/SKILL.md", "---\ndescription: Does s.\n---\nStep.\n")
    write(work, ".claude/agents/scout.md", "---\nname: scout\ndescription: Finds.\n---\nYou are the scout.\n")
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    return work


def test_block_one_is_the_same_to_the_byte_for_another_session_project_and_person(project: Path, tmp_path: Path) -> None:
    first = kit(project, installed=EVERYTHING).play("go")
    again = kit(project, installed=EVERYTHING).play("something else")
    assert first.requests[0]["system"] == again.requests[0]["system"] and first.requests[0]["tools"] == again.requests[0]["tools"]
    (tmp_path / "other").mkdir()
    other = kit(tmp_path / "other", installed=EVERYTHING, model=None, append_system_prompt="Mine.").play("go")
    assert system(other, 0) == system(first, 0) and system(other, 1) != system(first, 1)
    assert str(tmp_path) not in system(first, 0)


def test_a_sessions_prefix_is_the_same_to_the_byte_over_its_turns(project: Path) -> None:
    """While files are edited, nested instructions come, a skill runs and instructions change on disk."""
    def edited(body: Any) -> Any:
        (project / "CLAUDE.md").write_text("Changed by somebody.\n")
        return read(project / "sub/a.py")

    turns = [edited, call("Edit", file_path=str(project / "sub/a.py"), old_string="This", new_string="That"),
             call("Skill", skill="s"), call("Write", file_path=str(project / "CLAUDE.md"), content="x"), END, END]
    run = kit(project, *turns, installed=EVERYTHING).play("go", "and again")
    requests = run.requests
    assert len(requests) == 6
    for earlier, later in pairwise(requests):
        assert earlier["system"] == later["system"] and earlier["tools"] == later["tools"]
        for n, message in enumerate(earlier["messages"]):
            blocks = later["messages"][n]["content"][:len(message["content"])]
            assert json.dumps(blocks) == json.dumps(message["content"])


def test_the_order_of_the_layers(project: Path) -> None:
    write(project, ".claude/output-styles/terse.md", "Style word.\n")
    run = kit(project, installed=EVERYTHING, append_system_prompt="Appended word.", settings={"outputStyle": "terse"}).play("go")
    fixed, own = system(run, 0), system(run, 1)
    assert len(run.requests[0]["system"]) == 2
    assert fixed.index("You are an agent") < fixed.index("Commit only when") < fixed.index("# Read\n")
    places = [own.index(word) for word in ("# Environment", "# Memory", "Style word.", "Appended word.", "# Git")]
    assert places == sorted(places) and "Git repository: yes" in own
    blocks = [b["text"] for b in run.requests[0]["messages"][0]["content"]]
    kinds = ["Contents of" in blocks[0], "skills can be loaded" in blocks[1], "Agents that the Agent tool" in blocks[2]]
    assert kinds == [True] * 3 and blocks[3] == "go"


def test_what_differs_between_machines_can_go_into_the_first_message(project: Path, tmp_path: Path) -> None:
    extra = {"exclude_dynamic_system_prompt_sections": True}
    run = kit(project, installed=EVERYTHING, extra=extra, append_system_prompt="Appended word.").play("go")
    (tmp_path / "other").mkdir()
    other = kit(tmp_path / "other", installed=EVERYTHING, extra=extra, append_system_prompt="Appended word.").play("go")
    assert run.requests[0]["system"] == other.requests[0]["system"] and system(run, 1) == "Appended word."
    first = run.requests[0]["messages"][0]["content"][0]["text"]
    assert first.index("# Environment") < first.index("# Memory") < first.index("# Git") < first.index("This is CLAUDE.md.")
    replaced = kit(project, installed=EVERYTHING, extra=extra, system_prompt="Mine.").play("go")
    assert "# Environment" not in seen(replaced)


def test_the_parts_are_asked_side_by_side(tmp_path: Path) -> None:
    """Each of two parts waits for the other one."""
    ready = {"a": anyio.Event(), "b": anyio.Event()}

    class Part:
        layer = "rules"

        def __init__(self, name: str, other: str) -> None:
            self.name, self.other = name, other

        async def text(self, session: Session) -> str:
            ready[self.name].set()
            with anyio.fail_after(10):
                await ready[self.other].wait()
            return f"Part {self.name}."

    def register_prompt_parts(register: Any) -> None:
        register(Part("b", "a"))
        register(Part("a", "b"))

    hooks = {"p": module(register_prompt_parts=hookimpl(register_prompt_parts))}
    assert "Part a.\n\nPart b." in system(kit(tmp_path, hooks=hooks).play("go"), 0)


def test_files_and_git_are_read_side_by_side(project: Path, monkeypatch: Any) -> None:
    import threading

    from kernel_memory import git_state, state

    both = threading.Barrier(2, timeout=20)
    monkeypatch.setattr(git_state, "of_session", lambda session: (both.wait(), "# Git\nboth")[1])
    load = state.Memory.load
    monkeypatch.setattr(state.Memory, "load", lambda self: (both.wait(), load(self))[1])
    run = kit(project).play("go")
    assert "# Git\nboth" in system(run, 1) and "This is CLAUDE.md." in seen(run)


def test_each_section_says_where_it_comes_from(project: Path) -> None:
    run = kit(project, installed=EVERYTHING).play("go")
    found = {(s.layer, s.name): s.source for s in run.session.sections}
    assert found["rules", "role"] == "kernel" and found["rules", "Read"] == "tools-files" and found["rules", "git"] == "memory"
    assert found["instructions", "instructions"] == "memory" and found["snapshot", "git-snapshot"] == "memory"
    assert text("x")["type"] == "text"
