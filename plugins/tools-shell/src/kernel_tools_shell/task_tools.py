"""TaskOutput and TaskStop, under their older names too (tools contract, 10.6)."""

from __future__ import annotations

from typing import Any

from kernel import Block, Session, Tool, ToolContext, ToolError, ToolResult, env_number
from kernel_tools_shell.manual import OUTPUT_MANUAL, STOP_MANUAL
from kernel_tools_shell.tasks import BackgroundTask, table

DEFAULT_WAIT_MS = 30_000
MAX_WAIT_MS = 600_000
FILTER_S = 5.0


def output_limit() -> int:
    """Characters of a task's output that are given: ``TASK_MAX_OUTPUT_LENGTH``, 32,000 by default, at most 160,000."""
    return min(env_number("TASK_MAX_OUTPUT_LENGTH", 32_000), 160_000)


def _task_id_repaired(input: dict[str, Any]) -> dict[str, Any]:
    """``bash_id`` and ``shell_id`` are older names of ``task_id``."""
    for old in ("bash_id", "shell_id"):
        if old in input:
            rest = {key: value for key, value in input.items() if key != old}
            input = {**rest, "task_id": input.get("task_id") or input[old]}
    return input


def _find(session: Session, task_id: str) -> BackgroundTask:
    task = table(session).get(task_id)
    if task is None:  # agents have names beside their ids
        task = next((t for t in table(session).values() if getattr(t, "name", None) == task_id and t.status == "running"), None)
    if task is None:
        running = [f"{t.id} ({t.description})" for t in table(session).values() if t.status == "running"]
        there = f"Running tasks: {'; '.join(running)}." if running else "No task is running."
        raise ToolError("no_such_task", f"There is no task with the id {task_id[:100]!r}. {there}")
    return task


class TaskOutput(Tool):
    name = "TaskOutput"
    aliases = ("BashOutput", "AgentOutputTool", "BashOutputTool")
    description = "Gives the status and the output of a background task."
    input_schema = {
        "type": "object",
        "properties": {
            "task_id": {"type": "string", "description": "The task's id."},
            "block": {"type": "boolean", "default": True, "description": "Wait until the task ends."},
            "timeout": {"type": "number", "minimum": 0, "default": DEFAULT_WAIT_MS,
                        "description": f"The longest wait in milliseconds, at most {MAX_WAIT_MS}."},
            "filter": {"type": "string", "description": "Give only output lines that match this regular expression."},
        },
        "required": ["task_id"],
        "additionalProperties": False,
    }
    output_schema = {
        "type": "object",
        "properties": {
            "retrieval_status": {"enum": ["success", "timeout", "not_ready"]},
            "task": {
                "type": "object",
                "properties": {"task_id": {"type": "string"}, "task_type": {"type": "string"}, "status": {"type": "string"},
                               "description": {"type": "string"}, "output": {"type": "string"}, "exitCode": {"type": "number"}},
                "required": ["task_id", "task_type", "status", "description", "output"],
            },
        },
        "required": ["retrieval_status", "task"],
    }
    permission = "free"
    polling = True
    max_result_chars = 200_000

    def prompt(self) -> str:
        return OUTPUT_MANUAL

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    def repair_input(self, input: dict[str, Any]) -> dict[str, Any]:
        return _task_id_repaired(input)

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        import anyio

        task = _find(context.session, input["task_id"])
        block = input.get("block", True)
        if block:
            with anyio.move_on_after(min(input.get("timeout", DEFAULT_WAIT_MS), MAX_WAIT_MS) / 1000):
                await task.wait()
        running = task.status == "running"
        output = task.output(output_limit())
        if input.get("filter"):
            output = await _filtered(output, input["filter"])
        structured = {
            "retrieval_status": "success" if not running else "timeout" if block else "not_ready",
            "task": {"task_id": task.id, "task_type": task.task_type, "status": task.status, "description": task.description,
                     "output": output, **task.details},
        }
        return ToolResult(content=self.from_structured(structured), structured=structured)

    def from_structured(self, structured: Any) -> str | list[Block]:
        if not isinstance(structured, dict) or not isinstance(structured.get("task"), dict):
            return super().from_structured(structured)
        task = structured["task"]
        lines = [f"Task {task.get('task_id')} ({task.get('task_type')}): {task.get('status')}"]
        if structured.get("retrieval_status") == "timeout":
            lines[0] += "; it did not end within the wait"
        if "exitCode" in task:
            lines.append(f"Exit code {task['exitCode']}")
        return "\n".join([*lines, "Output:", str(task.get("output") or "(no output so far)")])


async def _filtered(text: str, pattern: str) -> str:
    """The lines that match. In a process of its own: an expression from a model may take for ever in this one.

    :raises ToolError: the expression cannot be used.
    """
    import subprocess

    import anyio.to_thread

    def run() -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(["grep", "-E", "-e", pattern],  # noqa: S603, S607  (a fixed program; the pattern is one argument)
                              input=text.encode("utf-8", "replace"), capture_output=True, timeout=FILTER_S, check=False)

    try:
        done = await anyio.to_thread.run_sync(run)
    except (subprocess.TimeoutExpired, OSError, ValueError) as error:
        raise ToolError("invalid_arguments", f"filter: the expression could not be used: {error}") from None
    if done.returncode > 1:
        raise ToolError("invalid_arguments", f"filter: {done.stderr.decode('utf-8', 'replace').strip()[:500]}")
    return done.stdout.decode("utf-8", "replace").rstrip()


class TaskStop(Tool):
    name = "TaskStop"
    aliases = ("KillShell", "KillBash")
    description = "Ends a background task."
    input_schema = {
        "type": "object",
        "properties": {"task_id": {"type": "string", "description": "The task's id."}},
        "required": ["task_id"],
        "additionalProperties": False,
    }
    output_schema = {
        "type": "object",
        "properties": {"message": {"type": "string"}, "task_id": {"type": "string"}, "task_type": {"type": "string"},
                       "command": {"type": "string"}},
        "required": ["message", "task_id", "task_type"],
    }
    permission = "free"

    def prompt(self) -> str:
        return STOP_MANUAL

    def is_concurrency_safe(self, input: dict[str, Any]) -> bool:
        return True

    def repair_input(self, input: dict[str, Any]) -> dict[str, Any]:
        return _task_id_repaired(input)

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        task = _find(context.session, input["task_id"])
        if task.status != "running":
            raise ToolError("task_ended", f"The task {task.id} ({task.description}) is not running any more: {task.status}.")
        await getattr(task, "stop_for_model", task.stop)()
        structured = {"message": f"Stopped the task {task.id} ({task.description})", "task_id": task.id,
                      "task_type": task.task_type}
        if "command" in task.details:
            structured["command"] = task.details["command"]
        return ToolResult(content=structured["message"], structured=structured)

    def from_structured(self, structured: Any) -> str | list[Block]:
        return str(structured.get("message", "")) if isinstance(structured, dict) else super().from_structured(structured)
