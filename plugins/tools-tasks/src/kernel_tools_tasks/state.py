"""The task list: what it holds, how it is changed, and how an agent is reminded of it."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from kernel import Session, ToolError
from kernel_tools_tasks.offer import is_offered
from kernel_tools_tasks.store import Store

Status = Literal["pending", "in_progress", "completed"]
REMINDED = 50
"""Tasks that a reminder names; the others are counted."""


class Task(Struct, kw_only=True, rename="camel", omit_defaults=True):
    """One task. ``blocks`` and ``blocked_by`` are ids and mirror each other."""

    id: str
    subject: str
    description: str = ""
    active_form: str | None = None
    status: Status = "pending"
    owner: str | None = None
    blocks: list[str] = field(default_factory=list)
    blocked_by: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)


class Tasks(Struct, kw_only=True):
    """The list. Ids count up and are never used again, so an id in the conversation keeps its meaning."""

    next: int = 1
    tasks: list[Task] = field(default_factory=list)

    def find(self, id: str) -> Task | None:
        return next((t for t in self.tasks if t.id == id), None)

    def get(self, id: str) -> Task:
        """:raises ToolError: ``no_such_task``."""
        task = self.find(id)
        if task is None:
            known = ", ".join(t.id for t in self.tasks[-20:])
            text = f"There is no task {id[:100]!r}. " + (f"The tasks are: {known}." if known else "The list is empty.")
            raise ToolError("no_such_task", text, structured=refusal(id, text))
        return task

    def add(self, **fields: Any) -> Task:
        task = Task(id=str(self.next), **fields)
        self.next += 1
        self.tasks.append(task)
        return task

    def remove(self, id: str) -> None:
        self.tasks = [t for t in self.tasks if t.id != id]
        for task in self.tasks:
            task.blocks = [b for b in task.blocks if b != id]
            task.blocked_by = [b for b in task.blocked_by if b != id]

    def open_blockers(self, task: Task) -> list[str]:
        """What the task still waits for."""
        return [b for b in task.blocked_by if (other := self.find(b)) is not None and other.status != "completed"]

    def link(self, first: Task, second: Task) -> bool:
        """``second`` waits for ``first``; whether that is new.

        :raises ToolError: ``invalid_arguments``: the two would wait for each other.
        """
        if second.id in first.blocks:
            return False
        if first is second or self._leads(second, first.id):
            text = f"Task {second.id} cannot wait for task {first.id}: " + (
                "a task cannot block itself." if first is second else f"task {first.id} already waits for it.")
            raise ToolError("invalid_arguments", text, structured=refusal(second.id, text))
        first.blocks.append(second.id)
        second.blocked_by.append(first.id)
        return True

    def _leads(self, task: Task, target: str) -> bool:
        """Whether a chain of ``blocks`` goes from the task to the target."""
        seen: set[str] = set()
        todo = [task]
        while todo:
            current = todo.pop()
            if current.id == target:
                return True
            if current.id not in seen:
                seen.add(current.id)
                todo += [t for t in map(self.find, current.blocks) if t is not None]
        return False


def refusal(id: str, error: str) -> dict[str, Any]:
    """The output object of an update that changed nothing."""
    return {"success": False, "taskId": id, "updatedFields": [], "error": error}


def tasks(session: Session) -> Store[Tasks]:
    return Store(session, "tasks", Tasks)


def line(tasks: Tasks, task: Task) -> str:
    """One task for the model: ``#3 [pending] subject (owner: x; waits for #1)``."""
    waits = tasks.open_blockers(task)
    notes = [f"owner: {task.owner}"] if task.owner else []
    notes += [f"waits for {', '.join(f'#{b}' for b in waits)}"] if waits else []
    return f"#{task.id} [{task.status}] {task.subject}" + (f" ({'; '.join(notes)})" if notes else "")


def waiting(session: Session) -> list[str]:
    """What is not done yet, on whichever list the session is offered; for other plugins, as ``plugin_state["open-tasks"]``.

    :raises ToolError: ``store_failed``, the list cannot be read.
    """
    if is_offered("todo", session):
        from kernel_tools_tasks.todo import Todos

        return [e["content"] for e in Store(session, "todos", Todos).read().todos if e["status"] != "completed"]
    found = tasks(session).read()
    return [line(found, task) for task in found.tasks if task.status != "completed"]


def remind(session: Session) -> None:
    """Open tasks go with the next user message: after a resume, and after a compaction took the calls away."""
    if not is_offered("tasks", session):
        return
    try:
        found = tasks(session).read()
    except ToolError as error:
        session.notice(f"plugin tools-tasks: {error}")
        return
    waiting = [t for t in found.tasks if t.status != "completed"]
    if waiting:
        more = f"\n... and {len(waiting) - REMINDED} more (TaskList shows all)" if len(waiting) > REMINDED else ""
        session.add_context("The task list of this session has open tasks. Keep it up to date with TaskUpdate; do not mention "
                            "this reminder.\n" + "\n".join(line(found, t) for t in waiting[:REMINDED]) + more)
