"""Hook implementations; the tools are in the modules beside this one."""

from __future__ import annotations

from kernel import Extension, Registry, Tool, hookimpl


@hookimpl
def register_tools(register: Registry[Tool]) -> None:
    from kernel_tools_files.toolset import file_tools

    for tool in file_tools():
        register(tool)


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    from kernel_tools_files.changes import FileChanges

    register(FileChanges())
