"""Hook implementations."""

from __future__ import annotations

from kernel import Extension, Registry, Session, SessionEnd, Tool, hookimpl


@hookimpl
def register_tools(register: Registry[Tool]) -> None:
    from kernel_tools_shell.bash import Bash
    from kernel_tools_shell.task_tools import TaskOutput, TaskStop

    register(Bash())
    register(TaskOutput())
    register(TaskStop())


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    from kernel_tools_shell.agents import AgentShells

    register(AgentShells())


@hookimpl
async def session_end(event: SessionEnd, session: Session) -> None:
    from kernel_tools_shell.shell import end_session

    await end_session(session)
