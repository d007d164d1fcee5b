"""Which list a session is offered (tools contract, 13.1), and the older form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from kernel_tools_tasks import plugin
from kernel_tools_tasks.offer import keeps_track
from kernel_tools_tasks.state import Tasks

from kernel import ToolError
from kernel.testing import Kit, call, text

FOUR = ["TaskCreate", "TaskGet", "TaskUpdate", "TaskList"]
BY_MODEL = {"kernel": {"tasks": {"byModel": True}}}


@pytest.mark.anyio
@pytest.mark.parametrize(("variables", "options", "offered"), [
    ({}, {}, FOUR),
    ({"CLAUDE_CODE_ENABLE_TASKS": "0"}, {}, ["TodoWrite"]),
    ({"CLAUDE_CODE_ENABLE_TASKS": "false"}, {}, ["TodoWrite"]),
    ({"CLAUDE_CODE_ENABLE_TASKS": "1"}, {}, FOUR),
    ({}, {"model": "claude-sonnet-5"}, FOUR),
    ({}, {"model": "claude-sonnet-5", "settings": BY_MODEL}, []),
    ({}, {"model": "claude-sonnet-4-5", "settings": BY_MODEL}, FOUR),
    ({"CLAUDE_CODE_ENABLE_TODO_TOOLS": "1"}, {"model": "claude-sonnet-5", "settings": BY_MODEL}, FOUR),
    ({"CLAUDE_CODE_ENABLE_TASKS": "0"}, {"model": "claude-sonnet-5", "settings": BY_MODEL}, []),
    ({}, {"model": "claude-sonnet-5", "settings": BY_MODEL, "allowed_tools": ["Bash(ls), TaskCreate"]}, FOUR),
    ({}, {"model": "claude-sonnet-5", "settings": BY_MODEL, "tools": ["TaskCreate", "Read"]}, ["TaskCreate"]),
    ({}, {"tools": ["Read", "TodoWrite"]}, ["TodoWrite"]),
    ({}, {"tools": ["TodoWrite", "TaskList"]}, ["TaskList"]),
    ({}, {"tools": []}, []),
])
async def test_the_tools_that_a_session_gets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str],
                                             options: dict[str, Any], offered: list[str]) -> None:
    for variable, setting in variables.items():
        monkeypatch.setenv(variable, setting)
    kit = Kit(tmp_path, hooks={"tools-tasks": plugin}, settings=options.pop("settings", None))
    for name, value in options.items():
        setattr(kit.harness.options, name, value)
    session = kit.open()
    await session.start()
    assert [t.name for t in session.toolbox.offered] == offered


@pytest.mark.parametrize(("model", "answer"), [
    ("claude-opus-4-8", True), ("claude-opus-4-7", False), ("claude-opus-4-20250514", False), ("claude-opus-5", True),
    ("claude-opus-5-20270101", True), ("claude-sonnet-4-6", False), ("claude-sonnet-5", True), ("claude-opus-4-10", True),
    ("us.anthropic.claude-sonnet-5-v1:0", True), ("claude-fable-5", True), ("claude-mythos-5-1", True), ("claude-haiku-9", False),
    ("claude-3-opus-20240229", False), ("gpt-5", False), ("", False),
])
def test_families_that_keep_track_by_themselves(model: str, answer: bool) -> None:
    assert keeps_track(model) is answer


def entry(content: str, status: str) -> dict[str, str]:
    return {"content": content, "status": status, "activeForm": f"{content}ing"}


@pytest.mark.anyio
async def test_todo_write_replaces_the_list_and_clears_a_finished_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_ENABLE_TASKS", "0")
    one, two, done = [entry("a", "pending")], [entry("a", "completed"), entry("b", "in_progress")], [entry("b", "completed")]
    run = await Kit(tmp_path, [*(call("TodoWrite", todos=t) for t in (one, two, done, one)), text("done")], persist=True,
                    hooks={"tools-tasks": plugin}).run("go")
    shown = [m.tool_use_result for m in run.outputs if getattr(m, "tool_use_result", None)]  # type: ignore[attr-defined]
    assert shown == [{"oldTodos": [], "newTodos": one}, {"oldTodos": one, "newTodos": two}, {"oldTodos": two, "newTodos": done},
                     {"oldTodos": [], "newTodos": one}]
    assert json.loads((tmp_path / ".config" / "tasks" / run.session.id / "todos.json").read_text()) == {"todos": one}
    assert "2 entries, 1 completed, 1 in_progress, 0 pending" in run.result_of("call_2")["content"]


@pytest.mark.anyio
@pytest.mark.parametrize(("todos", "field"), [
    ([{**entry("a", "pending"), "content": ""}], "todos.0.content"),
    ([entry("a", "pending"), {**entry("a", "pending"), "content": " "}], "todos.1.content"),
    ([entry("a", "done")], "todos.0.status"), ([{"content": "a", "status": "pending"}], "activeForm"), ("x", "todos"),
    ([5], "todos.0"),
])
async def test_todo_write_refuses_entries_that_say_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, todos: Any,
                                                           field: str) -> None:
    monkeypatch.setenv("CLAUDE_CODE_ENABLE_TASKS", "0")
    run = await Kit(tmp_path, [call("TodoWrite", todos=todos), text("done")], hooks={"tools-tasks": plugin}).run("go")
    assert run.result_of("call_1")["is_error"] and field in run.result_of("call_1")["content"]


@pytest.mark.anyio
async def test_todo_write_takes_the_older_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_ENABLE_TASKS", "0")
    todos = [{"content": "a", "status": "pending", "active_form": "doing a"}]
    run = await Kit(tmp_path, [call("TodoWrite", todos=todos), text("done")], hooks={"tools-tasks": plugin}).run("go")
    assert "is_error" not in run.result_of("call_1")


# -- invariants -------------------------------------------------------------------------------------------------------
@given(st.lists(st.tuples(st.sampled_from(["add", "remove", "link", "done"]), st.integers(1, 6), st.integers(1, 6)), max_size=40))
def test_links_mirror_each_other_name_existing_tasks_and_make_no_circle(steps: list[tuple[str, int, int]]) -> None:
    found = Tasks()
    for what, first, second in steps:
        if what == "add":
            found.add(subject="s")
        elif what == "remove":
            found.remove(str(first))
        else:
            one, other = found.find(str(first)), found.find(str(second))
            if what == "done" and one:
                one.status = "completed"
            elif one and other:
                try:
                    found.link(one, other)
                except ToolError:
                    pass
    ids = [t.id for t in found.tasks]
    assert len(set(ids)) == len(ids)
    for task in found.tasks:
        assert {*task.blocks, *task.blocked_by} <= set(ids)
        assert all(task.id in found.get(b).blocked_by for b in task.blocks)
        assert all(task.id in found.get(b).blocks for b in task.blocked_by)
    left = {t.id: set(t.blocked_by) for t in found.tasks}
    while left:  # some task waits for nothing, or there is a circle
        ready = [i for i, waits in left.items() if not waits & left.keys()]
        assert ready
        for i in ready:
            del left[i]
