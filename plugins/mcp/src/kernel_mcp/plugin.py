"""Hook implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Command, DirectoryAdded, Extension, Registry, Session, UserPromptSubmit


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    from kernel_mcp.extension import McpExtension

    register(McpExtension())


@hookimpl
def register_commands(register: Registry[Command]) -> None:
    from kernel_mcp.command import McpCommand

    register(McpCommand())


@hookimpl
async def user_prompt_submit(event: UserPromptSubmit, session: Session) -> None:
    if "@" in event.prompt and "mcp" in session.plugin_state:
        from kernel_mcp.resources import mentioned

        await mentioned(session.plugin_state["mcp"], session, event.prompt)


@hookimpl
async def directory_added(event: DirectoryAdded, session: Session) -> None:
    bridge = session.plugin_state.get("mcp")
    if bridge is not None:
        await bridge.root_added(event.directory)
