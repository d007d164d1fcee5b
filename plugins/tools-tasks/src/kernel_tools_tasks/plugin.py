"""Hook implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Registry, Session, SessionStart, Tool


@hookimpl
def register_tools(register: Registry[Tool]) -> None:
    from kernel_tools_tasks.task_tools import TaskCreate, TaskGet, TaskList, TaskUpdate
    from kernel_tools_tasks.todo import TodoWrite

    for tool in (TaskCreate(), TaskGet(), TaskUpdate(), TaskList(), TodoWrite()):
        register(tool)


@hookimpl
def session_start(event: SessionStart, session: Session) -> None:
    def open_tasks() -> list[str]:
        from kernel_tools_tasks.state import waiting

        return waiting(session.root)

    session.root.plugin_state["open-tasks"] = open_tasks
    if event.source in ("resume", "compact"):
        from kernel_tools_tasks.state import remind

        remind(session)
