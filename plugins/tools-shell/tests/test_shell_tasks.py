"""Background commands: their start, their end, who is told, and the two tools for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from kernel_tools_shell import command, plugin, shell, task_tools, tasks

from kernel import ToolError
from kernel.testing import Kit, alive, call, text, until

pytestmark = pytest.mark.anyio
WAITS = "while [ ! -e go ]; do sleep 0.02; done; "


async def start(box: Any, text: str, **more: Any) -> str:
    result = await box.bash(text, run_in_background=True, **more)
    id: str = result.structured["backgroundTaskId"]
    return id


def release(box: Any) -> None:
    (box.workspace / "go").touch()


async def test_a_background_command_returns_at_once_with_id_and_file(box: Any) -> None:
    result = await box.bash(f"{WAITS} echo ended", run_in_background=True, id="call_7", description="wait for go")
    id = result.structured["backgroundTaskId"]
    path = box.session.plugin_state["tasks"][id].path
    assert f"running in background with ID: {id}" in result.content and path in result.content
    assert box.said("task_started") == [{"task_id": id, "description": "wait for go", "tool_use_id": "call_7",
                                         "task_type": "local_bash", "is_backgrounded": True}]
    live = {"task_id": id, "task_type": "local_bash", "description": "wait for go"}
    assert box.said("background_tasks_changed")[-1]["tasks"] == [live]
    assert box.said("task_notification") == [] and box.told() == ""
    release(box)
    await until(lambda: box.said("background_tasks_changed")[-1]["tasks"] == [])
    assert Path(path).read_text() == "ended\n"


async def test_a_command_is_live_until_its_end_was_told(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients never miss one whose end they were not told of, however busy the loop is."""
    held: list[Any] = []
    monkeypatch.setattr(tasks, "_poster", lambda: held.append)
    first = await start(box, "true", id="call_1")
    await until(lambda: held)
    second = await start(box, f"{WAITS} true", id="call_2")

    def live() -> list[str]:
        return [task["task_id"] for task in box.said("background_tasks_changed")[-1]["tasks"]]

    assert box.session.plugin_state["tasks"][first].status == "completed"
    assert live() == [first, second] == list(box.session.background_tasks)
    held.pop()()
    assert live() == [second] == list(box.session.background_tasks)
    release(box)
    await until(lambda: held)
    held.pop()()
    assert live() == [] == list(box.session.background_tasks)


@pytest.mark.parametrize(("end", "status", "notice", "words"), [
    ("exit 0", "completed", "completed", "completed (exit code 0)"), ("exit 3", "failed", "failed", "failed with exit code 3"),
    ("kill -9 $$", "failed", "failed", "failed with exit code 137"),
])
async def test_its_end_is_told_to_clients_and_to_the_model(box: Any, end: str, status: str, notice: str,
                                                           words: str) -> None:
    id = await start(box, end, description="the build")
    await until(lambda: box.said("task_notification"))
    (updated,) = box.said("task_updated")
    assert updated["task_id"] == id and updated["patch"]["status"] == status and updated["patch"]["end_time"] > 1_600_000_000_000
    (told,) = box.said("task_notification")
    assert told == {"task_id": id, "status": notice, "output_file": box.session.plugin_state["tasks"][id].path,
                    "tool_use_id": "call_1", "summary": f'Background command "the build" {words}'}
    assert f"<task-id>{id}</task-id>" in box.told() and words in box.told() and "not from the user" in box.told()


async def test_the_model_hears_of_the_end_in_its_next_user_message(tmp_path: Path) -> None:
    kit = Kit(tmp_path, [call("Bash", command="true", run_in_background=True), call("Bash", command="sleep 0.3"), text("done")],
              hooks={"tools-shell": plugin})
    run = await kit.run("go")
    await run.session.close()
    last = run.requests[2]["messages"][-1]["content"]
    assert last[0]["type"] == "tool_result" and "<task-notification>" in last[1]["text"]


@pytest.mark.parametrize(("options", "wakes"), [
    ({}, False), ({"input_format": "stream-json"}, True), ({"print_mode": False}, True)])
async def test_where_more_prompts_can_come_the_end_is_a_letter_that_starts_a_run(options: dict[str, Any], wakes: bool,
                                                                                 tmp_path: Path) -> None:
    kit = Kit(tmp_path, [call("Bash", command=f"{WAITS} true", run_in_background=True), text("done"), text("seen")],
              hooks={"tools-shell": plugin}, **options)
    run = await kit.run("go")
    (tmp_path / "go").touch()
    await until(lambda: bool(len(run.session.inbox) or run.session.pending))
    assert bool(len(run.session.inbox)) is wakes
    if wakes:
        result = await run.session.submit(None, origin=run.session.inbox.origin)
        assert result.result == "seen" and "<task-notification>" in str(kit.model.requests[-1]["messages"][-1])
    await run.session.close()


async def test_output_of_a_running_task_without_waiting(box: Any) -> None:
    id = await start(box, f"echo so far; {WAITS} exit 4", description="d")
    await until(lambda: box.session.plugin_state["tasks"][id].output(100))
    result = await box.call("TaskOutput", task_id=id, block=False)
    assert result.structured["retrieval_status"] == "not_ready"
    task = result.structured["task"]
    assert task == {"task_id": id, "task_type": "local_bash", "status": "running", "description": "d", "output": "so far",
                    "command": f"echo so far; {WAITS} exit 4", "outputFile": box.session.plugin_state["tasks"][id].path}
    assert "running" in result.content and "so far" in result.content


async def test_waiting_for_a_task_that_ends_and_for_one_that_does_not(box: Any) -> None:
    id = await start(box, f"{WAITS} echo now; exit 4")
    late = await box.call("TaskOutput", task_id=id, timeout=50)
    assert late.structured["retrieval_status"] == "timeout" and "did not end" in late.content
    results = []

    async def wait() -> None:
        results.append(await box.call("TaskOutput", task_id=id))

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        group.start_soon(wait)  # two may wait for one task
        await anyio.sleep(0.02)
        release(box)
    for result in results:
        assert result.structured["retrieval_status"] == "success"
        assert (result.structured["task"]["status"], result.structured["task"]["exitCode"]) == ("failed", 4)
        assert "Exit code 4\nOutput:\nnow" in result.content


async def test_a_cancelled_wait_leaves_the_task_alone(box: Any) -> None:
    id = await start(box, f"{WAITS}")
    with anyio.move_on_after(0.05):
        await box.call("TaskOutput", task_id=id)
    assert box.session.plugin_state["tasks"][id].status == "running"


async def test_the_output_given_is_limited(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    id = await start(box, "seq 1 50000")
    assert 31_000 < len((await box.call("TaskOutput", task_id=id)).structured["task"]["output"]) < 32_100
    monkeypatch.setenv("TASK_MAX_OUTPUT_LENGTH", "1000")
    assert len((await box.call("TaskOutput", task_id=id)).structured["task"]["output"]) < 1_100
    monkeypatch.setenv("TASK_MAX_OUTPUT_LENGTH", "9999999")
    assert task_tools.output_limit() == 160_000


@pytest.mark.parametrize(("name", "key"), [("TaskOutput", "task_id"), ("BashOutput", "bash_id"), ("BashOutputTool", "shell_id"),
                                           ("AgentOutputTool", "task_id")])
async def test_older_names_of_output(box: Any, name: str, key: str) -> None:
    id = await start(box, "echo hi")
    assert (await box.call(name, **{key: id})).structured["task"]["output"] == "hi"


@pytest.mark.parametrize(("name", "key"), [("TaskStop", "task_id"), ("KillShell", "shell_id"), ("KillBash", "shell_id")])
async def test_stopping_under_each_name(box: Any, name: str, key: str) -> None:
    id = await start(box, "sleep 300 & echo $! > kid; wait", description="d")
    kid = await box.pid("kid")
    result = await box.call(name, **{key: id})
    assert not alive(kid)
    assert result.structured == {"message": f"Stopped the task {id} (d)", "task_id": id, "task_type": "local_bash",
                                 "command": "sleep 300 & echo $! > kid; wait"}
    assert [m["patch"]["status"] for m in box.said("task_updated")] == ["killed"]
    assert [m["status"] for m in box.said("task_notification")] == ["stopped"]
    assert box.told() == "", "the model did it itself"


async def test_a_filter_gives_matching_lines(box: Any) -> None:
    id = await start(box, "printf 'ok 1\\nerror 2\\nerror 3\\n'")
    await box.call("TaskOutput", task_id=id)
    result = await box.call("BashOutput", bash_id=id, filter="^err")
    assert result.structured["task"]["output"] == "error 2\nerror 3"
    with pytest.raises(ToolError, match="filter: "):
        await box.call("BashOutput", bash_id=id, filter="(")


@pytest.mark.parametrize("name", ["TaskOutput", "TaskStop"])
async def test_an_unknown_id_names_the_running_tasks(box: Any, name: str) -> None:
    with pytest.raises(ToolError, match="No task is running"):
        await box.call(name, task_id="b404")
    id = await start(box, WAITS, description="the server")
    with pytest.raises(ToolError, match=rf"b404.*{id} \(the server\)") as caught:
        await box.call(name, task_id="b404")
    assert caught.value.code == "no_such_task"


async def test_a_finished_task_cannot_be_stopped(box: Any) -> None:
    id = await start(box, "true")
    await box.call("TaskOutput", task_id=id)
    with pytest.raises(ToolError, match="not running any more: completed"):
        await box.call("TaskStop", task_id=id)


async def test_tasks_of_other_plugins_are_served_too(box: Any) -> None:
    class Agent:
        id, task_type, description, status = "a1", "local_agent", "look around", "completed"
        details = {"agentId": "a1"}

        def output(self, limit: int) -> str:
            return "found it"

        async def wait(self) -> None:
            pass

    box.session.plugin_state.setdefault("tasks", {})["a1"] = Agent()
    task = (await box.call("AgentOutputTool", task_id="a1")).structured["task"]
    assert task == {"task_id": "a1", "task_type": "local_agent", "status": "completed", "description": "look around",
                    "output": "found it", "agentId": "a1"}


async def test_a_background_command_that_floods_is_killed(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MAX_WRITTEN", 2_000_000)
    await start(box, "yes", description="d")
    await until(lambda: box.said("task_notification"))
    assert box.said("task_notification")[0]["summary"] == 'Background command "d" was ended: it wrote too much output'


async def test_a_background_command_of_a_subagent_has_a_longest_life(box: Any,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_SUBAGENT_BG_SHELL_MAX_MS", "100")
    box.session.agent_id = "agent-1"
    await start(box, "sleep 300", description="d")
    await until(lambda: box.said("task_notification"))
    assert "reached its time limit" in box.said("task_notification")[0]["summary"]


# -- the end of the session ----------------------------------------------------------------------------------------------
async def test_nothing_outlives_the_session(box: Any) -> None:
    id = await start(box, "sleep 300 & echo $! > kid; wait", description="d")
    await box.bash("(setsid sh -c 'echo $$ > away; exec sleep 300' >/dev/null 2>&1 &)")
    pids = [await box.pid("kid"), await box.pid("away")]
    await box.session.close()
    with anyio.move_on_after(10):  # killed; the system may take a moment to clear them away
        while any(map(alive, pids)):  # noqa: ASYNC110  # nothing tells of it
            await anyio.sleep(0.02)
    assert not any(map(alive, pids))
    assert [(m["task_id"], m["status"]) for m in box.said("task_notification")] == [(id, "stopped")]
    assert box.said("background_tasks_changed")[-1]["tasks"] == []


async def test_background_commands_get_a_last_chance_to_end(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "GRACE_S", 20.0)
    await start(box, f"{WAITS} echo finished > last")
    async with anyio.create_task_group() as group:
        group.start_soon(box.session.close)
        await anyio.sleep(0.05)
        release(box)
    assert (box.workspace / "last").read_text() == "finished\n"
    assert [m["status"] for m in box.said("task_notification")] == ["completed"]


async def test_a_run_that_was_cut_short_gives_no_last_chance(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "GRACE_S", 3600.0)
    await start(box, "echo $$ > pid; sleep 300")
    pid = await box.pid("pid")
    box.session.interrupted = True
    await box.session.close()
    assert not alive(pid)


async def test_closing_under_a_time_limit_still_ends_everything(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "GRACE_S", 3600.0)
    await start(box, "echo $$ > pid; sleep 300")
    pid = await box.pid("pid")
    with anyio.move_on_after(0.1):
        await box.session.close()
    assert not alive(pid)


async def test_an_interrupt_of_a_turn_leaves_background_commands_alone(tmp_path: Path) -> None:
    kit = Kit(tmp_path, hooks={"tools-shell": plugin}, turns=[
        call("Bash", command="echo $$ > back; sleep 300", run_in_background=True),
        call("Bash", command="while [ ! -s back ]; do sleep 0.02; done; echo $$ > front; sleep 300"), text("done")])
    session = kit.open()
    results = []

    async def run() -> None:
        results.append(await session.submit("go"))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await until(lambda: (tmp_path / "front").exists() and (tmp_path / "front").read_text())
        session.interrupt()
    assert results[0].terminal_reason == "aborted_tools"
    assert not alive(int((tmp_path / "front").read_text())) and alive(int((tmp_path / "back").read_text()))
    await session.close()
    assert not alive(int((tmp_path / "back").read_text()))


async def test_a_session_without_commands_ends_without_a_shell(box: Any) -> None:
    await box.session.close()
    assert "tools-shell" not in box.session.plugin_state


async def test_a_finished_task_holds_no_descriptor(box: Any) -> None:
    import os

    await box.bash("true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await box.call("TaskOutput", task_id=await start(box, "echo hi"))
    await until(lambda: len(os.listdir("/proc/self/fd")) <= before)


async def test_a_session_may_go_on_after_its_end_was_told(box: Any) -> None:
    await box.bash("true")
    await shell.end_session(box.session)
    assert await box.text("echo again") == "again"
