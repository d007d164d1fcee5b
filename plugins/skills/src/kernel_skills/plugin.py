"""Hook implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Command, Extension, Registry, Session, SessionStart, Tool


@hookimpl
def register_tools(register: Registry[Tool]) -> None:
    from kernel_skills.tool import SkillTool

    register(SkillTool())


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    from kernel_skills.extension import SkillsExtension

    register(SkillsExtension())


@hookimpl
def register_commands(register: Registry[Command]) -> None:
    from kernel_skills.command import SkillsCommand

    register(SkillsCommand())


@hookimpl
def session_start(event: SessionStart, session: Session) -> None:
    if event.source == "clear":
        from kernel_skills import state

        state.of(session).forget()
