"""Hook implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import PermissionRequest, PermissionRequestResult, Session, hookimpl

if TYPE_CHECKING:
    from kernel import Command, Extension, Middleware, PromptPart, Registry


@hookimpl
def register_prompt_parts(register: Registry[PromptPart]) -> None:
    from kernel_memory.parts import GitManual, GitSnapshot, Instructions, MemoryManual

    register(GitManual())
    register(GitSnapshot())
    register(MemoryManual())
    register(Instructions())


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    from kernel_memory.extension import MemoryExtension

    register(MemoryExtension())


@hookimpl
def register_middleware(register: Registry[Middleware]) -> None:
    from kernel_memory.extension import MemoryMiddleware

    register(MemoryMiddleware())


@hookimpl
def permission_request(event: PermissionRequest, session: Session) -> PermissionRequestResult | None:
    from kernel_memory.extension import permission

    decision = permission(session, event.tool_name, event.tool_input)
    return None if decision is None else PermissionRequestResult(permission=decision)


@hookimpl
def register_commands(register: Registry[Command]) -> None:
    from kernel_memory.context_show import ContextShow
    from kernel_memory.memory_command import MemoryCommand

    register(ContextShow())
    register(MemoryCommand())
