"""Hook implementations; the tools are in the modules beside this one."""

from __future__ import annotations

from kernel import Extension, Registry, Session, Tool, UserPromptSubmit, hookimpl


@hookimpl
def register_tools(register: Registry[Tool]) -> None:
    from kernel_tools_files.toolset import file_tools

    for tool in file_tools():
        register(tool)


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    from kernel_tools_files.changes import FileChanges
    from kernel_tools_files.mentions import Mentions

    register(FileChanges())
    register(Mentions())


@hookimpl
def user_prompt_submit(event: UserPromptSubmit, session: Session) -> None:
    if "@" in event.prompt:
        from kernel_tools_files.mentions import note

        note(session, event.prompt)
