"""Hook implementations; the tools are in the modules beside this one."""

from __future__ import annotations

from kernel import Registry, Tool, hookimpl


@hookimpl
def register_tools(register: Registry[Tool]) -> None:
    from kernel_tools_files.toolset import file_tools

    for tool in file_tools():
        register(tool)
