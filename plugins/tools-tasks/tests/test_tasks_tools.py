"""The four task tools, under the real loop."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import anyio
import pytest
from kernel_tools_tasks import plugin

from kernel import Session, TaskCompleted, TaskCompletedResult, TaskCreated, TaskCreatedResult, ToolContext, ToolError, ToolResult
from kernel.testing import Kit, Run, call, module, text

pytestmark = pytest.mark.anyio


def kit(cwd: Path, *turns: Any, hooks: dict[str, Any] | None = None, **options: Any) -> Kit:
    return Kit(cwd, turns, hooks={"tools-tasks": plugin, **(hooks or {})}, **options)


async def use(session: Session, name: str, **input: Any) -> ToolResult:
    """The tool alone, without permission and hooks of the batch."""
    tool = session.toolbox.by_name[name]
    context = ToolContext(session, "call", name)
    input = tool.repair_input(input)
    tool.validate_input(input, context)
    return await tool.call(input, context)


async def opened(cwd: Path, **options: Any) -> Session:
    session = kit(cwd, **options).open()
    await session.start()
    return session


def results(run: Run) -> list[Any]:
    return [m.tool_use_result for m in run.outputs if getattr(m, "tool_use_result", None) is not None]


async def test_a_list_is_written_read_and_worked_off(tmp_path: Path) -> None:
    run = await kit(
        tmp_path, call("TaskCreate", subject="Write it", description="all of it", activeForm="Writing it"),
        call("TaskCreate", subject="Check it", description="twice", metadata={"size": 3}),
        call("TaskUpdate", taskId="2", addBlockedBy=["1"], owner="me"), call("TaskList"),
        call("TaskUpdate", taskId="1", status="completed"), call("TaskList"), call("TaskGet", taskId="2"), text("done")).run("go")
    blocked = {"id": "2", "subject": "Check it", "status": "pending", "owner": "me", "blockedBy": ["1"]}
    assert results(run) == [
        {"task": {"id": "1", "subject": "Write it"}}, {"task": {"id": "2", "subject": "Check it"}},
        {"success": True, "taskId": "2", "updatedFields": ["owner", "addBlockedBy"]},
        {"tasks": [{"id": "1", "subject": "Write it", "status": "pending", "blockedBy": []}, blocked]},
        {"success": True, "taskId": "1", "updatedFields": ["status"], "statusChange": {"from": "pending", "to": "completed"}},
        {"tasks": [{"id": "1", "subject": "Write it", "status": "completed", "blockedBy": []}, {**blocked, "blockedBy": []}]},
        {"task": {"id": "2", "subject": "Check it", "description": "twice", "status": "pending", "blocks": [],
                  "blockedBy": ["1"]}}]
    assert run.result_of("call_4")["content"] == "#1 [pending] Write it\n#2 [pending] Check it (owner: me; waits for #1)"
    assert "owner: me" in run.result_of("call_7")["content"] and "size" in run.result_of("call_7")["content"]


async def test_results_fit_the_output_schemas(tmp_path: Path) -> None:
    from jsonschema.validators import Draft202012Validator

    session = await opened(tmp_path)
    done = [("TaskCreate", await use(session, "TaskCreate", subject="a", description="")),
            ("TaskUpdate", await use(session, "TaskUpdate", taskId="1", status="in_progress", owner="x")),
            ("TaskUpdate", await use(session, "TaskUpdate", taskId="1")), ("TaskGet", await use(session, "TaskGet", taskId="1")),
            ("TaskGet", await use(session, "TaskGet", taskId="9")), ("TaskList", await use(session, "TaskList"))]
    for name, result in done:
        tool = session.toolbox.by_name[name]
        assert tool.output_schema is not None
        Draft202012Validator(tool.output_schema).validate(result.structured)
        assert isinstance(tool.from_structured(result.structured), str)
    with pytest.raises(ToolError) as caught:
        await use(session, "TaskUpdate", taskId="9", status="completed")
    Draft202012Validator(session.toolbox.by_name["TaskUpdate"].output_schema or {}).validate(caught.value.structured)


async def test_ids_count_up_and_are_never_used_again(tmp_path: Path) -> None:
    session = await opened(tmp_path)
    for _ in range(2):
        await use(session, "TaskCreate", subject="a", description="")
    await use(session, "TaskUpdate", taskId="2", status="deleted")
    made = await use(session, "TaskCreate", subject="b", description="")
    assert made.structured["task"]["id"] == "3"
    assert (await use(session, "TaskGet", taskId="2")).structured == {"task": None}


@pytest.mark.parametrize(("change", "changed"), [
    ({}, []), ({"subject": "s"}, []), ({"subject": "other"}, ["subject"]), ({"description": ""}, ["description"]),
    ({"owner": ""}, []), ({"owner": "me"}, ["owner"]), ({"status": "pending"}, []), ({"status": "in_progress"}, ["status"]),
    ({"metadata": {"a": 1}}, []), ({"metadata": {"a": None}}, ["metadata"]), ({"metadata": {"b": {"c": []}}}, ["metadata"]),
    ({"activeForm": "x", "addBlocks": ["2"]}, ["activeForm", "addBlocks"]), ({"addBlocks": []}, []),
    ({"status": "deleted"}, ["status"]),
])
async def test_updated_fields_are_those_that_changed(tmp_path: Path, change: dict[str, Any], changed: list[str]) -> None:
    session = await opened(tmp_path)
    await use(session, "TaskCreate", subject="s", description="d", metadata={"a": 1, "gone": None})
    await use(session, "TaskCreate", subject="t", description="d")
    result = await use(session, "TaskUpdate", taskId="1", **change)
    assert result.structured["updatedFields"] == changed
    assert result.status == ("success" if changed else "empty") and not result.failed


async def test_metadata_is_merged_and_null_removes_a_key(tmp_path: Path) -> None:
    session = await opened(tmp_path)
    await use(session, "TaskCreate", subject="s", description="d", metadata={"a": 1, "b": 2})
    await use(session, "TaskUpdate", taskId="1", metadata={"b": None, "c": 3})
    assert "{'a': 1, 'c': 3}" in str((await use(session, "TaskGet", taskId="1")).content)


@pytest.mark.parametrize(("input", "says"), [
    ({"taskId": "7"}, "no_such_task"), ({"taskId": "1", "addBlocks": ["7"]}, "no_such_task"),
    ({"taskId": "1", "addBlocks": ["1"]}, "itself"), ({"taskId": "3", "addBlocks": ["1"]}, "already waits"),
])
async def test_an_update_that_cannot_be_made_changes_nothing(tmp_path: Path, input: dict[str, Any], says: str) -> None:
    session = await opened(tmp_path)
    for _ in range(3):
        await use(session, "TaskCreate", subject="s", description="d")
    await use(session, "TaskUpdate", taskId="1", addBlocks=["2"])
    await use(session, "TaskUpdate", taskId="2", addBlocks=["3"])
    before = (await use(session, "TaskList")).structured
    with pytest.raises(ToolError) as caught:
        await use(session, "TaskUpdate", subject="changed", **input)
    assert says in f"{caught.value.code} {caught.value}"
    assert caught.value.structured["success"] is False and caught.value.structured["error"]
    assert (await use(session, "TaskList")).structured == before


async def test_a_removed_task_blocks_nothing(tmp_path: Path) -> None:
    session = await opened(tmp_path)
    for _ in range(2):
        await use(session, "TaskCreate", subject="s", description="d")
    await use(session, "TaskUpdate", taskId="1", addBlocks=["2"])
    await use(session, "TaskUpdate", taskId="1", status="deleted")
    assert (await use(session, "TaskGet", taskId="2")).structured["task"]["blockedBy"] == []


@pytest.mark.parametrize("input", [
    {"id": "1", "status": "in_progress"}, {"task_id": "1", "status": "in_progress"}, {"taskId": 1, "status": "in_progress"}])
async def test_known_misspellings_are_put_right(tmp_path: Path, input: dict[str, Any]) -> None:
    run = await kit(tmp_path, call("TaskCreate", subject="s", description="d", active_form="doing"),
                    call("TaskUpdate", None, **input), text("done")).run("go")
    assert results(run)[1]["statusChange"] == {"from": "pending", "to": "in_progress"}


@pytest.mark.parametrize(("name", "input", "field"), [
    ("TaskCreate", {"subject": "s"}, "description"), ("TaskCreate", {"subject": "", "description": ""}, "subject"),
    ("TaskCreate", {"subject": " ", "description": ""}, "subject"), ("TaskGet", {}, "taskId"), ("TaskList", {"x": 1}, "x"),
    ("TaskUpdate", {"taskId": "1", "status": "done"}, "status"), ("TaskUpdate", {"taskId": ["1"]}, "taskId"),
    ("TaskUpdate", {"taskId": "1", "metadata": 5}, "metadata"),
])
async def test_bad_input_names_the_field(tmp_path: Path, name: str, input: dict[str, Any], field: str) -> None:
    run = await kit(tmp_path, call(name, None, **input), text("done")).run("go")
    result = run.result_of("call_1")
    assert result["is_error"] and "invalid_arguments" in result["content"] and field in result["content"]


# -- hooks ------------------------------------------------------------------------------------------------------------
async def test_a_created_task_exists_while_hooks_look_at_it_and_a_refusal_removes_it(tmp_path: Path) -> None:
    """hooks contract, 18.16"""
    seen: list[Any] = []

    async def task_created(event: TaskCreated, session: Session) -> TaskCreatedResult | None:
        listed = await use(session, "TaskList")
        seen.append((event.task_id, event.task_subject, event.task_description, [t["id"] for t in listed.structured["tasks"]]))
        return TaskCreatedResult(decision="block", reason="title needs a ticket") if event.task_id == "1" else None

    run = await kit(tmp_path, call("TaskCreate", subject="do it", description="d"),
                    call("TaskCreate", subject="ABC-1 do it", description=""), call("TaskList"), text("done"),
                    hooks={"judge": module(task_created=task_created)}).run("go")
    assert seen == [("1", "do it", "d", ["1"]), ("2", "ABC-1 do it", None, ["2"])]
    refused = run.result_of("call_1")
    assert refused["is_error"] and "title needs a ticket" in refused["content"]
    assert [t["id"] for t in results(run)[2]["tasks"]] == ["2"]


async def test_continue_false_of_task_created_has_no_effect(tmp_path: Path) -> None:
    run = await kit(tmp_path, call("TaskCreate", subject="s", description="d"), text("done"), hooks={
        "judge": module(task_created=lambda event: TaskCreatedResult(continue_=False, stop_reason="stop"))}).run("go")
    assert run.result.result == "done" and results(run) == [{"task": {"id": "1", "subject": "s"}}]


async def test_an_interrupt_while_hooks_run_leaves_no_task(tmp_path: Path) -> None:
    async def task_created(event: TaskCreated, session: Session) -> None:
        session.interrupt()
        await anyio.sleep_forever()

    run = await kit(tmp_path, call("TaskCreate", subject="s", description="d"),
                    hooks={"judge": module(task_created=task_created)}).run("go")
    assert run.result.terminal_reason == "aborted_tools"
    assert (await use(run.session, "TaskList")).structured == {"tasks": []}


async def test_a_refused_completion_keeps_the_task_as_it_was(tmp_path: Path) -> None:
    """hooks contract, 18.17"""
    seen: list[tuple[str, str]] = []

    def task_completed(event: TaskCompleted) -> TaskCompletedResult:
        seen.append((event.task_id, event.task_subject))
        return TaskCompletedResult(decision="block", reason="tests fail")

    run = await kit(tmp_path, call("TaskCreate", subject="s", description="d"),
                    call("TaskUpdate", taskId="1", status="completed", subject="t"), call("TaskList"), text("done"),
                    hooks={"judge": module(task_completed=task_completed)}).run("go")
    refused = run.result_of("call_2")
    assert refused["is_error"] and "tests fail" in refused["content"]
    assert results(run)[1]["success"] is False and "tests fail" in results(run)[1]["error"]
    assert results(run)[2]["tasks"][0] == {"id": "1", "subject": "s", "status": "pending", "blockedBy": []}
    assert seen == [("1", "t")]


async def test_completion_is_asked_for_once_and_only_where_there_is_one(tmp_path: Path) -> None:
    seen: list[str] = []
    run = await kit(
        tmp_path, call("TaskCreate", subject="s", description="d"), call("TaskUpdate", taskId="1", status="in_progress"),
        call("TaskUpdate", taskId="1", status="completed"), call("TaskUpdate", taskId="1", status="completed"),
        call("TaskUpdate", taskId="9", status="completed"),
        call("TaskUpdate", taskId="1", status="completed", addBlocks=["9"]), text("done"),
        hooks={"seer": module(task_completed=lambda event: seen.append(event.task_id))}).run("go")
    assert seen == ["1"]
    assert [run.result_of(f"call_{n}").get("is_error", False) for n in (3, 4, 5, 6)] == [False, False, True, True]


async def test_a_guard_that_fails_says_so(tmp_path: Path) -> None:
    def task_created(event: TaskCreated) -> None:
        raise RuntimeError("out of order")

    run = await kit(tmp_path, call("TaskCreate", subject="s", description="d"), text("done"),
                    hooks={"judge": module(task_created=task_created)}).run("go")
    assert any("judge" in n and "out of order" in n for n in run.notices())


# -- classes ----------------------------------------------------------------------------------------------------------
async def test_classes_of_the_calls(tmp_path: Path) -> None:
    session = await opened(tmp_path)
    reads = {name: session.toolbox.by_name[name].is_read_only({}) for name in ("TaskCreate", "TaskGet", "TaskUpdate", "TaskList")}
    assert reads == {"TaskCreate": False, "TaskGet": True, "TaskUpdate": False, "TaskList": True}
    assert all(t.permission == "free" and t.is_concurrency_safe({}) == reads[t.name] for t in session.toolbox.offered)
    assert all(f"# {t.name}\n" in session.system[0]["text"] for t in session.toolbox.offered)


# -- disk -------------------------------------------------------------------------------------------------------------
async def test_the_list_lies_in_the_sessions_folder_for_its_owner_alone(tmp_path: Path) -> None:
    session = await opened(tmp_path, persist=True)
    await use(session, "TaskCreate", subject="s", description="d")
    path = tmp_path / ".config" / "tasks" / session.id / "tasks.json"
    assert json.loads(path.read_text())["tasks"][0]["subject"] == "s"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert sorted(p.name for p in path.parent.iterdir()) == [".lock", "tasks.json"]


async def test_a_session_that_keeps_no_files_writes_none(tmp_path: Path) -> None:
    session = await opened(tmp_path)
    await use(session, "TaskCreate", subject="s", description="d")
    assert len((await use(session, "TaskList")).structured["tasks"]) == 1
    assert not (tmp_path / ".config").exists()


async def test_a_resumed_session_has_its_list_and_is_reminded_of_what_is_open(tmp_path: Path) -> None:
    """Through the real transcript store; the first process is gone."""
    first = kit(tmp_path, call("TaskCreate", subject="first", description="d"),
                call("TaskCreate", subject="second", description="d"), call("TaskUpdate", taskId="1", status="completed"),
                text("later"), installed=["sessions"], persist=True)
    run = await first.run("go")
    await run.session.close()
    second = kit(tmp_path, call("TaskList"), text("done"), installed=["sessions"], persist=True, resume=run.session.id)
    again = await second.run("go on")
    reminders = [b["text"] for m in again.requests[0]["messages"] for b in m["content"] if "open tasks" in b.get("text", "")]
    assert len(reminders) == 1 and "#2 [pending] second" in reminders[0] and "first" not in reminders[0]
    assert [t["status"] for t in results(again)[-1]["tasks"]] == ["completed", "pending"]


async def test_a_new_session_starts_empty_and_without_a_reminder(tmp_path: Path) -> None:
    run = await kit(tmp_path, call("TaskCreate", subject="s", description="d"), text("x"), persist=True).run("go")
    other = await kit(tmp_path, call("TaskList"), text("done"), persist=True).run("go")
    assert run.session.id != other.session.id and results(other) == [{"tasks": []}]
    assert "open tasks" not in json.dumps(other.requests[0])


async def test_two_sessions_share_a_list_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_TASK_LIST_ID", "../team one")
    first, second = await opened(tmp_path, persist=True), await opened(tmp_path, persist=True)

    async def add(session: Session) -> None:
        for _ in range(5):
            await use(session, "TaskCreate", subject=session.id, description="d")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add, first)
        tasks.start_soon(add, second)
    listed = (await use(first, "TaskList")).structured["tasks"]
    assert sorted(int(t["id"]) for t in listed) == list(range(1, 11))
    assert [p.name for p in (tmp_path / ".config" / "tasks").iterdir()] == ["---team-one"]


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"tasks": 5}', b'{"tasks": [{"id": 1}]}', b"\xff\xfe", b"[" * 100_000])
async def test_a_broken_file_is_set_aside_and_told(tmp_path: Path, content: bytes) -> None:
    it = kit(tmp_path, call("TaskCreate", subject="s", description="d"), text("done"), persist=True)
    session = it.open()
    folder = tmp_path / ".config" / "tasks" / session.id
    folder.mkdir(parents=True)
    (folder / "tasks.json").write_bytes(content)
    run = await it.run("go", session)
    assert results(run) == [{"task": {"id": "1", "subject": "s"}}]
    assert (folder / "tasks.broken.json").read_bytes() == content
    assert any("tools-tasks" in n and "tasks.broken.json" in n for n in run.notices())


async def test_a_folder_that_cannot_be_made_is_an_error_of_the_call(tmp_path: Path) -> None:
    (tmp_path / ".config").write_text("a file")
    run = await kit(tmp_path, call("TaskCreate", subject="s", description="d"), text("done"), persist=True).run("go")
    result = run.result_of("call_1")
    assert result["is_error"] and "Could not write the list" in result["content"] and run.result.result == "done"


async def test_a_list_that_stays_locked_is_an_error_of_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    from kernel_tools_tasks import store

    monkeypatch.setattr(store, "LOCK_TRIES", 2)
    session = await opened(tmp_path, persist=True)
    await use(session, "TaskCreate", subject="s", description="d")
    with (tmp_path / ".config" / "tasks" / session.id / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ToolError, match="locked"):
            await use(session, "TaskCreate", subject="s", description="d")
    await use(session, "TaskCreate", subject="s", description="d")
